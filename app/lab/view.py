"""Where a run stands: what a page shows of its events. Made by `app.lab.folding`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from app.core.charts import Scale, byte_scale
from app.theory.lab_runs import Point
from labs.spec.events import Component, DetailEvent, LogEvent, SpanEvent, Split


@dataclass(frozen=True)
class RankMemory:
    """What one rank held at the peak of a step."""

    rank: int
    bytes: Mapping[Component, float]

    @property
    def label(self) -> str:
        return f"Rank {self.rank}"

    @property
    def total(self) -> float:
        return sum(self.bytes.values())


@dataclass(frozen=True)
class Transfer:
    """Collectives of one kind on one rank in one step."""

    title: str
    operation: str
    phase: str
    group: str
    count: int
    payload_bytes: float
    wire_bytes: float
    seconds: float
    expected_payload_bytes: float | None


@dataclass(frozen=True)
class Reading:
    """What a strategy reported of itself in its last step so far, on rank 0."""

    name: str
    step: int
    value: float
    unit: str


@dataclass(frozen=True)
class Wait:
    """Something that took time before the first step: what, as rank 0 says it, from when until when, in seconds since
    the run started. Under way it has no end."""

    doing: str
    began: float
    ended: float | None

    @property
    def seconds(self) -> float | None:
        return None if self.ended is None else self.ended - self.began


@dataclass(frozen=True)
class RunView:
    """Where a run stands. Memory and spans are of its last probed step, readings of the last step."""

    phase: str = ""
    hosts: Mapping[int, str] = field(default_factory=dict)  # of each rank, of a run over several
    waits: tuple[Wait, ...] = ()
    steps_done: int = 0
    memory_step: int | None = None
    memory_during: str = ""
    memory: tuple[RankMemory, ...] = ()
    state: tuple[RankMemory, ...] = ()
    transfers_step: int | None = None
    transfers: tuple[Transfer, ...] = ()
    spans: tuple[SpanEvent, ...] = ()
    details: tuple[DetailEvent, ...] = ()
    split: Split | None = None
    readings: tuple[Reading, ...] = ()
    points: tuple[Point, ...] = ()
    log: tuple[LogEvent, ...] = ()
    log_dropped: int = 0

    @property
    def seats(self) -> dict[str, list[int]]:
        """The ranks on each host, as far as they have said where they sit."""
        found: dict[str, list[int]] = {}
        for rank, host in sorted(self.hosts.items()):
            found.setdefault(host, []).append(rank)
        return found

    @property
    def worst(self) -> RankMemory | None:
        return max(self.memory, key=lambda each: each.total, default=None)

    def memory_scale(self, *others: float) -> Scale:
        """One axis for both pictures of memory, so that they may be compared."""
        return byte_scale([*(each.total for each in self.memory), *(each.total for each in self.state), *others])
