"""The command lines of the product's processes. `app` knows the worker by these alone."""

from __future__ import annotations

import sys
from pathlib import Path


def web() -> list[str]:
    """The web server, as settings say."""
    return [sys.executable, "-m", "app.cli", "serve"]


def worker(devices: str) -> list[str]:
    """A worker for runs on `devices`: auto, cpu, or cuda:0,1."""
    return [sys.executable, "-m", "worker", "--devices", devices]


def worker_over_hosts(backend: str, partition: str = "") -> list[str]:
    """A worker for runs over several hosts."""
    return [sys.executable, "-m", "worker", "--backend", backend, "--partition", partition]


def cluster(what: str, state: Path, *options: str) -> list[str]:
    """Makes or removes the local cluster that stands in `state`."""
    return [sys.executable, "-m", "labs.cluster", what, "--state", str(state), *options]


def control() -> list[str]:
    """The worker of sweeps, closings and fits."""
    return [sys.executable, "-m", "worker", "--control"]


def beat() -> list[str]:
    """The clock that sends sweeps."""
    return [sys.executable, "-m", "worker", "--beat"]


def device_check(devices: str) -> list[str]:
    """Ends with 1, and says why, where a worker could not be bound to `devices`."""
    return [sys.executable, "-m", "worker.devices", devices]


def doctor() -> list[str]:
    """What this machine has for runs."""
    return [sys.executable, "-m", "worker.doctor"]
