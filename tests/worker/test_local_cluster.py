"""Hosts as network namespaces of this machine: made, slow as asked for, lost, and gone without a trace."""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from app.core.db import Database
from app.lab.predict import theory_of
from app.lab.records import TrainingTheory
from labs import cluster
from labs.cluster import CannotCluster, load, read_delay, read_rate
from labs.spec import parse_run_spec
from labs.spec.events import Event, LogEvent, StepEvent
from tests.labs.ranks import run_now
from tests.support.pace import slack_seconds
from tests.support.slurm import need_namespaces
from tests.support.working import Working
from worker import namespaces
from worker.devices import UnknownDevice
from worker.namespaces import find_cluster

# A link so slow that a step is little else: tensor parallelism across it, a megabyte a step.
ACROSS: dict[str, Any] = {
    "model": {"layers": 2, "hidden": 64, "heads": 4, "vocab": 256},
    "training": {"sequence": 64, "micro_batch": 4, "steps": 12, "checkpoint_every": 4},
    "parallel": {"tensor": 2},
    "hosts": 2,
    "link": {"bytes_per_second": 2e6},
    "device": "cpu",
    "probes": ["communication"],
}


def call(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "labs.cluster", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def state(tmp_path: Path) -> Iterator[Path]:
    """Where a cluster stands that is up. The machine's own interfaces are as they were: a browser that sees them change
    ends what it is loading."""
    need_namespaces()
    path, before = tmp_path / "cluster.json", _interfaces()
    done = call("up", "--state", str(path), "--hosts", "2", "--rate", "200mbit", "--delay", "0")
    assert done.returncode == 0, done.stderr
    assert _interfaces() == before
    yield path
    with contextlib.suppress(CannotCluster):
        cluster.down(path)


@pytest.mark.slow
def test_a_run_is_as_slow_as_its_link_and_one_that_loses_a_host_goes_on_where_it_was(
    state: Path, sqlite: Database, tmp_path: Path
) -> None:
    """It goes on from its last checkpoint, and has the losses of an unbroken run."""
    theory = theory_of(parse_run_spec(ACROSS))
    assert isinstance(theory, TrainingTheory)
    assert theory.step_seconds is not None
    devices = find_cluster(state)
    working = Working(sqlite, tmp_path / "data", ACROSS, devices=devices)
    try:
        working.wait_for_step(6)
        assert working.hosts() == {0: "h1", 1: "h2"}
        lines = (json.loads(line) for line in working.reported().splitlines())
        steps = [line["seconds"] for line in lines if line["kind"] == "step"]
        # TCP/IP takes 4 % of the link besides, and the ranks compute
        assert theory.step_seconds < statistics.median(steps[1:]) < 2.5 * theory.step_seconds + slack_seconds()

        found = load(state)
        assert found is not None
        subprocess.run(["ip", "-n", found.hosts[1].namespace, "link", "set", "eth0", "down"], check=True)
        lost_at = time.monotonic()
        run = working.ended()
        assert time.monotonic() - lost_at < 30 + slack_seconds()
        assert run.status == "queued"
        assert run.phase.startswith(f"Host h2 was lost after step {_step_of(run.phase)}, and rank 1 with it.")
        assert devices.place(parse_run_spec(ACROSS)) is None, "it waits until the host is back"
        assert "1 of 2 hosts usable" in str(devices.describe())
        assert not _pids(found.hosts[0].namespace)

        subprocess.run(["ip", "-n", found.hosts[1].namespace, "link", "set", "eth0", "up"], check=True)
        working.wait_until(lambda: found.hosts[1].is_up)
        working.work()
        run = working.ended()
    finally:
        working.close()
    assert run.status == "finished", run.failure
    assert run.result is not None
    assert run.result["payload_bytes_per_step"] > 0, "it is probed after a restart, too"
    first, last = working.starts()
    before, losses = _losses(first), _losses(last)
    assert len(losses) == ACROSS["training"]["steps"], "those that were done before are told again"
    said = {event.line for event in last if isinstance(event, LogEvent)}
    assert {line.partition(":")[0] for line in said} == {"starting again", "restart 1"}, "why, and from where"
    unbroken = {key: value for key, value in ACROSS.items() if key not in ("hosts", "link")}
    # on one host a rank has half the threads, and adds up in another order
    assert losses == pytest.approx(run_now(unbroken).losses(), rel=1e-5)
    assert losses[: len(before)] == before, "steps that were done twice gave the same both times, to the digit"

    assert call("down", "--state", str(state)).stdout == "The cluster is down.\n"
    assert not list(Path("/run/netns").glob(f"{found.bridge}*"))
    assert call("down", "--state", str(state)).stdout == "No cluster is up.\n"
    with pytest.raises(UnknownDevice, match="`rankzero cluster up` makes one"):
        find_cluster(state)


def _losses(events: Sequence[Event]) -> list[float | None]:
    return [event.loss for event in events if isinstance(event, StepEvent)]


def _interfaces() -> list[str]:
    return sorted(os.listdir("/sys/class/net"))


def _namespaces() -> list[str]:
    return sorted(os.listdir("/run/netns"))


def _step_of(phase: str) -> str:
    return phase.partition("after step ")[2].partition(",")[0]


def _pids(namespace: str) -> list[str]:
    return subprocess.run(["ip", "netns", "pids", namespace], capture_output=True, text=True, check=True).stdout.split()


@pytest.mark.slow
def test_what_a_cluster_cannot_be_is_refused_and_nothing_is_left(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "up already" in call("up", "--state", str(state)).stderr
    before = _namespaces()
    for wrong, said in (
        (("--hosts", "1"), "--hosts 1: accepted is 2 to 8."),
        (("--rate", "fast"), "--rate fast: accepted is 0.8mbit to 100gbit, such as 200mbit."),
        (("--rate", "1bit"), "--rate 1bit: accepted is 0.8mbit to"),
        (("--delay", "3weeks"), "--delay 3weeks: accepted is 0s to 1s, such as 500us."),
    ):
        done = call("up", "--state", str(tmp_path / "other.json"), *wrong)
        assert (done.returncode, said in done.stderr) == (2, True), done.stderr
    with monkeypatch.context() as patch:  # one of the last steps fails
        patch.setattr(cluster, "_can_delay", _fails)
        with pytest.raises(CannotCluster):
            cluster.up(tmp_path / "other.json", 2, 1e8, 0.0)
    assert _namespaces() == before
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(CannotCluster, match="need root"):
        cluster.up(tmp_path / "other.json", 2, 1e8, 0.0)
    with pytest.raises(UnknownDevice, match="needs root"):
        namespaces.find_cluster(state)


def _fails(_host: object) -> bool:
    raise CannotCluster("no")


def test_rates_and_delays_are_read_in_the_units_of_links() -> None:
    assert read_rate("1gbit") == 125e6
    assert read_rate("200mbit") == 25e6
    assert read_delay("1ms") == pytest.approx(1e-3)
    assert read_delay("0") == 0
