"""Runs over the hosts of a local cluster (labs.cluster): torchrun on each, on a leash, in the host's namespace."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psutil

from labs.cluster import CannotCluster, Cluster, Host, load
from labs.command import RUN_STARTED_AT, environment, torchrun_over_hosts
from labs.gang import HOST, PEERS_SECONDS
from labs.spec import RunSpec
from worker.devices import Placement, UnknownDevice
from worker.launcher import Launch, OnLeash, make_folders
from worker.over_hosts import RanksOverHosts, SeveralHosts

_PORTS = range(20_000, 30_000)  # below those that systems give out themselves
_LOOK_SECONDS = 1.0


@dataclass(frozen=True)
class LocalCluster(SeveralHosts):
    """A cluster of namespaces: all cores of the machine on every host, no GPU, links as a run asks for them."""

    state: Path
    cluster: Cluster | None
    trouble: str = ""

    def place(self, spec: RunSpec, gpus_elsewhere: int = 0, taken: frozenset[str] = frozenset()) -> Placement | None:
        if self.cluster is None or spec.hosts == 1 or spec.device == "cuda":
            return None
        hosts = [host for host in self.cluster.hosts if host.is_up]
        if len(hosts) < spec.hosts or (spec.link and spec.link.latency_seconds and not self.cluster.can_delay):
            return None
        text = f"{spec.hosts} hosts of the local cluster, {spec.parallel.world_size} ranks over gloo"
        start = partial(launch_on, self.cluster, tuple(hosts[: spec.hosts]))
        return Placement(text, {"CUDA_VISIBLE_DEVICES": ""}, launch=start, way="on a local cluster")

    def describe(self) -> list[dict[str, object]]:
        if self.cluster is None:
            return []
        cores, memory = os.cpu_count() or 1, psutil.virtual_memory().total
        hosts = [
            {
                "name": host.name,
                "state": "up" if is_up else "link down",
                "is_usable": is_up,
                "cpus": cores,
                "gpus": 0,
                "memory_bytes": memory,
            }
            for host, is_up in ((host, host.is_up) for host in self.cluster.hosts)  # each look starts a process
        ]
        usable = sum(bool(each["is_usable"]) for each in hosts)
        rate = f"{8 * self.cluster.bytes_per_second / 1e6:g} Mbit/s"
        return [
            {
                "kind": "cluster",
                "name": f"Local cluster over {rate}, {usable} of {len(hosts)} hosts usable",
                "backend": "gloo",
                "memory_bytes": memory,
                "is_shaped": True,
                "can_delay": self.cluster.can_delay,
                "hosts": hosts,
            }
        ]

    def look_again(self) -> LocalCluster:
        try:
            return find_cluster(self.state)
        except UnknownDevice as error:
            return LocalCluster(self.state, None, str(error))


def find_cluster(state: Path) -> LocalCluster:
    """The local cluster. Raises UnknownDevice where none is up."""
    cluster = load(state)
    if cluster is None:
        raise UnknownDevice("--backend cluster: no local cluster is up. `rankzero cluster up` makes one.")
    if os.geteuid() != 0:
        raise UnknownDevice("--backend cluster: entering a host's namespace needs root.")
    return LocalCluster(state, cluster)


def launch_on(cluster: Cluster, hosts: tuple[Host, ...], spec: RunSpec, folder: Path, extra: dict[str, str]) -> Launch:
    """Start `spec` on these hosts, over links as it asks for them. Raises OSError."""
    events, logs = make_folders(spec, folder)
    rate = spec.link.bytes_per_second if spec.link else cluster.bytes_per_second
    try:
        cluster.shape(rate, spec.link.latency_seconds if spec.link else cluster.latency_seconds)
    except CannotCluster as error:
        raise OSError(f"the links cannot be set: {error}") from error
    meeting = (hosts[0].address, str(random.choice(_PORTS)))  # noqa: S311 - a port, not a secret
    started: dict[Host, OnLeash] = {}
    try:
        for number, host in enumerate(hosts):
            command = [*host.entering(), *torchrun_over_hosts(spec, events, logs, meeting, str(number))]
            variables = environment({**extra, RUN_STARTED_AT: repr(time.time()), HOST: host.name})
            started[host] = OnLeash(command, folder, variables, folder / f"torchrun-{number}.log")
    except OSError:
        _end_all(started)
        raise
    return Launch(folder, RanksInNamespaces(started), False)


class RanksInNamespaces(RanksOverHosts):
    """torchrun on each host. Where one has ended the others are given time to say why they end, too."""

    def __init__(self, started: Mapping[Host, OnLeash]) -> None:
        self._started = started
        self.doing = f"starting ranks on {', '.join(host.name for host in started)}"
        self._first_ended: float | None = None
        self._looked_at = 0.0
        self._lost: tuple[str, ...] = ()

    @property
    def is_waiting(self) -> bool:
        return False

    def poll(self) -> int | None:
        codes = [each.poll() for each in self._started.values()]
        ended = [code for code in codes if code is not None]
        if len(ended) == len(codes):
            return next((code for code in ended if code), 0)
        if ended and self._first_ended is None:
            self._first_ended = time.monotonic()
        if self._first_ended is not None and time.monotonic() - self._first_ended > PEERS_SECONDS:
            self.end()
            return next((code for code in ended if code), 1)
        return None

    def end(self) -> None:
        _end_all(self._started)

    def lost_hosts(self) -> tuple[str, ...]:
        """Those whose link is down."""
        if time.monotonic() - self._looked_at > _LOOK_SECONDS:
            self._looked_at = time.monotonic()
            self._lost = tuple(host.name for host in self._started if not host.is_up)
        return self._lost


def _end_all(started: Mapping[Host, OnLeash]) -> None:
    for each in started.values():
        if each.stdin is not None:
            with suppress(OSError):
                each.stdin.close()  # all are told before any is waited for
    for each in started.values():
        each.end()
