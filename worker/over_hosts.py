"""A run over several hosts: what the worker knows of it beside what its ranks report, whoever started them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping

from app.lab.work import RunFailure
from labs.spec import RunSpec, host_of
from labs.spec.events import Event, HostEvent, PhaseEvent
from worker.devices import Placement
from worker.failures import LOST_ANOTHER_RANK, last_step, reported_ranks, when
from worker.pulses import Pulses

HOST_LOST = "host lost"
SILENT_SECONDS = 15.0  # sooner than a single rank's, which is blamed itself
SILENT_WHILE_LOADING_SECONDS = 45.0  # loading torch from a cold disk holds up a rank's other threads
SILENT_AND_MISSED_SECONDS = 8.0  # where a rank of another host has lost a peer


class SeveralHosts(ABC):
    """What a worker is bound to that takes runs over several hosts, and leaves those of one to plain workers."""

    cpu = True
    trouble: str

    @abstractmethod
    def place(self, spec: RunSpec, gpus_elsewhere: int = 0, taken: frozenset[str] = frozenset()) -> Placement | None:
        """Where `spec` can run here, or None."""

    @abstractmethod
    def describe(self) -> list[dict[str, object]]:
        """For the page of devices: the hosts by name, with what is usable."""

    @abstractmethod
    def look_again(self) -> SeveralHosts:
        """The same as it is now."""

    def jobs(self) -> Mapping[str, str]:
        """What it has of ours to carry out, by the folder's name of the run."""
        return {}


class RanksOverHosts(ABC):
    """What was started on several hosts; see `worker.launcher.Started`."""

    pid: int | None = None
    doing: str = ""  # what takes the time before the ranks speak for themselves

    @property
    @abstractmethod
    def is_waiting(self) -> bool:
        """Whether it waits for hosts: such time is none of the run's."""

    @abstractmethod
    def poll(self) -> int | None:
        """The exit code, or None while it works."""

    @abstractmethod
    def end(self) -> None:
        """End it and all it started; returns once it is gone."""

    def lost_hosts(self) -> tuple[str, ...]:
        """Hosts of the run that are known to be gone, found without asking for long."""
        return ()

    def failure(self) -> tuple[RunFailure, bool] | None:
        """Why it ended, where that is known otherwise than from its ranks, and whether the run may start again."""
        return None


def hosts_of_ranks(events: Iterable[Event], spec: RunSpec) -> Mapping[int, str]:
    """The host of every rank, as far as any rank of it has said where it is."""
    named = {host_of(event.rank, spec): event.host for event in events if isinstance(event, HostEvent)}
    ranks = range(spec.parallel.world_size)
    return {rank: named[host_of(rank, spec)] for rank in ranks if host_of(rank, spec) in named}


def find_lost(events: Iterable[Event], torchrun_output: str, spec: RunSpec) -> str | None:
    """The host that was lost, told from what is missing: none of its ranks left a word, nor did its torchrun on any of
    them, while others say no more than that they lost a rank."""
    seen = list(events)
    said = {event.rank: event for event in seen if isinstance(event, PhaseEvent) and event.phase == "failed"}
    if not said or any(each.detail is None or each.detail.cause != LOST_ANOTHER_RANK for each in said.values()):
        return None
    ranks = range(spec.parallel.world_size)
    spoke = {host_of(rank, spec) for rank in (*said, *reported_ranks(torchrun_output)) if rank in ranks}
    silent = [rank for rank in ranks if host_of(rank, spec) not in spoke]
    if len({host_of(rank, spec) for rank in silent}) != 1:
        return None
    return hosts_of_ranks(seen, spec).get(silent[0], f"number {host_of(silent[0], spec) + 1}")


def silent_hosts(
    events: Iterable[Event], pulses: Pulses, spec: RunSpec, torchrun_output: Callable[[], str] = lambda: ""
) -> tuple[str, ...]:
    """Hosts of which no rank has given a sign of life for long, nor has said why it ended, nor has its torchrun; while
    another host's ranks live. Soon where a rank has noticed, later where nobody has, last while torch is loaded."""
    seen = list(events)
    said = {event.rank: event.detail for event in seen if isinstance(event, PhaseEvent) and event.phase == "failed"}
    limit = SILENT_SECONDS if last_step(seen) else SILENT_WHILE_LOADING_SECONDS
    if any(detail is not None and detail.cause == LOST_ANOTHER_RANK for detail in said.values()):
        limit = SILENT_AND_MISSED_SECONDS
    by_host: dict[int, set[int]] = {}
    for rank in range(spec.parallel.world_size):
        by_host.setdefault(host_of(rank, spec), set()).add(rank)
    silent = pulses.silent_for(limit)
    gone = [ranks for ranks in by_host.values() if ranks <= silent and not ranks & said.keys()]
    if gone:
        reported = reported_ranks(torchrun_output())
        gone = [ranks for ranks in gone if not ranks & reported]
    if not gone or len(gone) == len(by_host):
        return ()
    named = hosts_of_ranks(seen, spec)
    return tuple(sorted({named.get(min(ranks), f"number {host_of(min(ranks), spec) + 1}") for ranks in gone}))


def host_lost(events: Iterable[Event], names: Iterable[str], spec: RunSpec) -> RunFailure:
    """The failure of a run of which hosts were lost."""
    seen, lost = list(events), sorted(names)
    step = last_step(seen)
    ranks = [rank for rank, host in sorted(hosts_of_ranks(seen, spec).items()) if host in lost]
    whose = f", and {'ranks' if len(ranks) > 1 else 'rank'} {', '.join(map(str, ranks))} with it" if ranks else ""
    what = f"{'Hosts' if len(lost) > 1 else 'Host'} {', '.join(lost)} {'were' if len(lost) > 1 else 'was'} lost"
    return RunFailure(HOST_LOST, f"{what} {when(step)}{whose}.", rank=ranks[0] if ranks else None, step=step or None)
