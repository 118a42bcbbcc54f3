"""Folding a run's events into where it stands, one event after the other. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, get_args

from app.lab.view import RankMemory, Reading, RunView, Transfer, Wait
from app.theory.lab_runs import Point
from labs.spec.events import (
    CommunicationEvent,
    Component,
    DetailEvent,
    Event,
    HostEvent,
    LogEvent,
    MeasurementEvent,
    MemoryEvent,
    PhaseEvent,
    SpanEvent,
    Split,
    StepEvent,
)

LOG_LINES = 200
_ENDED = ("finished", "failed", "cancelled")
_COMPONENTS: tuple[Component, ...] = get_args(Component)
_MODEL_STATE: tuple[Component, ...] = ("parameters", "gradients", "optimizer")  # what persists from step to step

_Kind = tuple[str, str, str]  # operation, phase and group: what a ledger can tell apart


def fold(events: Iterable[Event], theory: Mapping[str, object]) -> RunView:
    """The view after `events`, communication beside what `theory` expects of it."""
    folded = RunFold(theory)
    folded.take(events)
    return folded.view()


class RunFold:
    """What is known of a run so far. It keeps what the view needs, whatever the number of events."""

    def __init__(self, theory: Mapping[str, Any]) -> None:
        self._expected = _by_kind(theory.get("transfers", []))
        self._begin()

    def _begin(self) -> None:
        self._phase = ""
        self._hosts: dict[int, str] = {}
        self._waits: list[tuple[str, float]] = []
        self._waited_until: float | None = None  # the first step's end, or the run's
        self._steps_done = 0
        self._split: Split | None = None
        self._peaks: list[MemoryEvent] = []  # of the last probed step, a rank each; so are the next four
        self._states: dict[int, MemoryEvent] = {}
        self._traffic: list[CommunicationEvent] = []
        self._spans: list[SpanEvent] = []
        self._details: list[DetailEvent] = []
        self._readings: dict[str, Reading] = {}
        self._points: list[Point] = []
        self._log: deque[LogEvent] = deque(maxlen=LOG_LINES)
        self._log_lines = 0

    def take(self, events: Iterable[Event]) -> None:
        """Add events behind those before."""
        for event in events:
            self._take(event)

    def _take(self, event: Event) -> None:
        match event:
            case PhaseEvent(phase="queued"):  # its worker was lost, and it starts again
                self._begin()
            case PhaseEvent():
                self._enter(event)
            case HostEvent():
                self._hosts[event.rank] = event.host
            case StepEvent():
                self._waited_until = self._waited_until or event.t
                self._steps_done, self._split = event.step, event.split or self._split
            case MemoryEvent(at="peak"):
                self._peaks = _with_newest([each for each in self._peaks if each.rank != event.rank], event)
            case MemoryEvent(at="step_end"):
                self._states[event.rank] = event
            case CommunicationEvent(rank=0):
                self._traffic = _with_newest(self._traffic, event)
            case SpanEvent():
                self._spans = _with_newest(self._spans, event)
            case DetailEvent():
                self._details = _with_newest(self._details, event)
            case MeasurementEvent():
                self._measure(event)
            case LogEvent():
                self._log.append(event)
                self._log_lines += 1

    def _enter(self, event: PhaseEvent) -> None:
        self._phase = event.phase
        if event.phase in _ENDED:
            self._waited_until = self._waited_until or event.t
        elif event.doing and self._waited_until is None and event.doing not in dict(self._waits):
            self._waits.append((event.doing, event.t))  # once: a host and its fork may both say it

    def _measure(self, event: MeasurementEvent) -> None:
        """A point of a program's figure counts from whichever rank, a strategy's reading from rank 0."""
        if event.x is None or event.y is None:
            return
        if event.figure is not None:
            self._points.append(Point(event.figure, event.name, float(event.x), float(event.y)))
        elif event.rank == 0:
            self._readings[event.name] = Reading(event.name, int(event.x), float(event.y), event.unit)

    def _waited(self) -> tuple[Wait, ...]:
        """What came before the first step, each until the next."""
        ends = [*(began for _, began in self._waits[1:]), self._waited_until]
        return tuple(Wait(doing, began, ended) for (doing, began), ended in zip(self._waits, ends, strict=False))

    def view(self) -> RunView:
        """Where the run stands now."""
        newest = self._peaks[0] if self._peaks else None
        return RunView(
            phase=self._phase,
            hosts=dict(sorted(self._hosts.items())),
            waits=self._waited(),
            steps_done=self._steps_done,
            memory_step=newest.step if newest else None,
            memory_during=(newest.during or "") if newest else "",
            memory=tuple(_held(event, _COMPONENTS) for event in sorted(self._peaks, key=lambda event: event.rank)),
            state=tuple(_held(event, _MODEL_STATE) for _, event in sorted(self._states.items())),
            transfers_step=self._traffic[0].step if self._traffic else None,
            transfers=_transfers(self._traffic, self._expected),
            spans=tuple(self._spans),
            details=tuple(self._details),
            split=self._split,
            readings=tuple(self._readings.values()),
            points=tuple(self._points),
            log=tuple(self._log),
            log_dropped=self._log_lines - len(self._log),
        )


_OfStep = TypeVar("_OfStep", MemoryEvent, CommunicationEvent, SpanEvent, DetailEvent)


def _with_newest(kept: list[_OfStep], event: _OfStep) -> list[_OfStep]:
    """`kept` and `event`, but of the newest step among them only."""
    if kept and kept[0].step > event.step:
        return kept
    if kept and kept[0].step < event.step:
        return [event]
    kept.append(event)
    return kept


def _held(event: MemoryEvent, components: Iterable[Component]) -> RankMemory:
    counted = frozenset(components)
    return RankMemory(
        event.rank, {name: float(event.bytes.get(name, 0)) if name in counted else 0.0 for name in _COMPONENTS}
    )


def _transfers(events: Iterable[CommunicationEvent], expected: Mapping[_Kind, _Expected]) -> tuple[Transfer, ...]:
    alike: dict[_Kind, list[CommunicationEvent]] = {}
    for event in events:
        alike.setdefault((event.operation, event.phase, event.group), []).append(event)
    return tuple(_added_up(kind, same, expected.get(kind)) for kind, same in alike.items())


def _added_up(kind: _Kind, events: list[CommunicationEvent], expected: _Expected | None) -> Transfer:
    return Transfer(
        # by its operation and phase where theory does not know it
        title=expected.title if expected and expected.title else f"{kind[0].replace('_', '-').capitalize()}, {kind[1]}",
        operation=kind[0],
        phase=kind[1],
        group=kind[2],
        count=sum(event.count for event in events),
        payload_bytes=sum(event.payload_bytes for event in events),
        wire_bytes=sum(event.wire_bytes for event in events),
        seconds=sum(event.seconds for event in events),
        expected_payload_bytes=expected.payload_bytes if expected else None,
    )


@dataclass(frozen=True)
class _Expected:
    """What theory says of collectives of one kind."""

    title: str
    payload_bytes: float


def _by_kind(transfers: Iterable[Mapping[str, Any]]) -> dict[_Kind, _Expected]:
    """Theory's transfers by operation, phase and group: what a ledger cannot tell apart is added up, all its names
    given."""
    found: dict[_Kind, _Expected] = {}
    for each in transfers:
        kind = (each["operation"], each["phase"], each.get("group", "data"))
        before = found.get(kind, _Expected("", 0.0))
        titles = filter(None, (before.title, each.get("title")))
        found[kind] = _Expected("; ".join(titles), before.payload_bytes + each["payload_bytes"])
    return found
