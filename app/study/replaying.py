"""Rebuilding memories from the review log, and checking that every entry follows from those before it. Pure.

An entry that does not follow is named with what was expected; nothing is repaired here. Entries written by the rules of
a former release are checked by those rules, each from the memory it says it started with.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, NamedTuple, Protocol
from zoneinfo import ZoneInfo

from fsrs import Card, Rating, State

from app.study import spreading
from app.study.days import day_number, day_start
from app.study.parameters import Parameters
from app.study.scheduling import (
    AT,
    NEW,
    NOT_REVIEWED,
    RULES_NAME,
    Memory,
    elapsed_days,
    place,
    rate,
    scheduler_of,
)  # fmt: skip

_RATING = {int(rating): rating for rating in Rating}


class Reviewed(Protocol):
    """What a memory is computed from."""

    kind: Any
    rating: Any
    reviewed_at: Any
    due_at: Any
    time_zone: Any
    day_starts_hour: Any
    memory_before: Any
    memory_after: Any


class Entry(NamedTuple):
    """An entry of the log as it is checked; the memories as the text that is stored."""

    id: int
    card_id: str
    revision: int
    kind: str
    rating: int
    reviewed_at: datetime
    due_at: datetime
    memory_before: str | None
    memory_after: str
    time_zone: str
    day_starts_hour: int
    scheduler: str
    parameters_id: str
    desired_retention: float
    phase: int
    repetition: int
    previous_id: int | None
    undone_at: datetime | None


@dataclass(frozen=True)
class Mismatch:
    """An entry, or a card's state, that is not what the log makes it."""

    card_id: str
    entry_id: int | None
    field: str
    stored: Any
    expected: Any

    def __str__(self) -> str:
        where = f"review {self.entry_id} of {self.card_id}" if self.entry_id else f"state of {self.card_id}"
        return f"{where}, {self.field}: {self.stored} is stored, {self.expected} is expected"


def recompute(history: Iterable[Reviewed], parameters: Parameters) -> dict[str, Any] | None:
    """The memory that a card's standing reviews make under `parameters`; due dates stay as they were chosen."""
    memory: dict[str, Any] | None = None
    for each in history:
        memory = _with_dates(_step(each, memory, parameters), each)
    return memory


def _step(each: Reviewed, memory: Memory | None, parameters: Parameters) -> Mapping[str, Any]:
    if each.kind == "import":
        return dict(each.memory_after)
    scheduler = scheduler_of(parameters, 0.9)  # the retention decides on days, not on memories
    if each.kind == "placement":
        step = place(_RATING[each.rating], scheduler)
    else:
        before = None if each.memory_before is None else memory
        elapsed = elapsed_days(before, each.reviewed_at, _zone(each.time_zone), each.day_starts_hour)
        step = rate(before, _RATING[each.rating], elapsed, scheduler)
    return {"state": step.state, "step": step.step, "stability": step.stability, "difficulty": step.difficulty}


def _with_dates(memory: Mapping[str, Any], each: Reviewed) -> dict[str, Any]:
    return {**memory, "due": each.due_at.isoformat(), "last_review": each.reviewed_at.isoformat()}


@lru_cache(maxsize=64)
def _zone(name: str) -> ZoneInfo:
    return ZoneInfo(name)


@dataclass
class _Node:
    """A card after an entry: py-fsrs's own card, the memory as it is stored, and the entry."""

    card: Card
    text: str
    entry: Entry


@dataclass
class Checker:
    """Checks the entries of one card after another."""

    parameters_of: Callable[[str], Parameters | None]
    nodes: dict[int, _Node] = field(default_factory=dict)

    def check_card(self, entries: Iterable[Entry]) -> Iterator[Mismatch]:
        """Everything that does not follow in the log of one card, in the order it was written."""
        self.nodes.clear()
        for entry in entries:
            parameters = self.parameters_of(entry.parameters_id)
            if parameters is None:
                yield Mismatch(entry.card_id, entry.id, "parameters_id", entry.parameters_id, "a set that is kept")
                continue
            if not entry.scheduler.startswith(RULES_NAME):
                yield from self._check_former(entry, parameters)
            elif entry.kind == "review":
                yield from self._check_review(entry, parameters)
            else:
                yield from self._check_start(entry, parameters)

    def _check_review(self, entry: Entry, parameters: Parameters) -> Iterator[Mismatch]:
        scheduler = scheduler_of(parameters, entry.desired_retention)
        zone, hour = _zone(entry.time_zone), entry.day_starts_hour
        today = day_number(entry.reviewed_at, zone, hour)
        before = self._before(entry, parameters)
        if before is None:
            card = Card(0, due=AT)
            phase = NEW
            if entry.memory_before is not None:
                yield _wrong(entry, "memory_before", entry.memory_before, "none")
        else:
            card, text, last_review_at = before
            phase = card.state.value
            card.last_review = AT - timedelta(days=max(0, today - day_number(last_review_at, zone, hour)))
            if text != entry.memory_before and not _same(text, entry.memory_before):
                yield _wrong(entry, "memory_before", entry.memory_before, text)
        if phase != entry.phase:
            yield _wrong(entry, "phase", entry.phase, phase)
        after, _ = scheduler.review_card(card, _RATING[entry.rating], AT)
        yield from _check_due(entry, after.state is State.Review, after.due - AT, today, zone)
        yield from self._keep(entry, after)

    def _check_start(self, entry: Entry, parameters: Parameters) -> Iterator[Mismatch]:
        """A placement, whose memory follows from its rating, or an import, whose memory is what it says."""
        if entry.phase != NOT_REVIEWED:
            yield _wrong(entry, "phase", entry.phase, NOT_REVIEWED)
        if entry.kind == "import":
            yield from self._keep(entry, _card(json.loads(entry.memory_after)))
            return
        step = place(_RATING[entry.rating], scheduler_of(parameters, entry.desired_retention))
        zone = _zone(entry.time_zone)
        today = day_number(entry.reviewed_at, zone, entry.day_starts_hour)
        yield from _check_due(entry, True, step.delay, today, zone)
        yield from self._keep(entry, Card(0, State(step.state), step.step, step.stability, step.difficulty, AT))

    def _check_former(self, entry: Entry, parameters: Parameters) -> Iterator[Mismatch]:
        """Rules before study days: py-fsrs on the clock, without fuzz."""
        card = Card(0, due=entry.reviewed_at)
        if entry.memory_before is not None:
            stored = json.loads(entry.memory_before)
            card = _card(stored)
            card.last_review = datetime.fromisoformat(stored["last_review"])
        after, _ = scheduler_of(parameters, entry.desired_retention).review_card(
            card, _RATING[entry.rating], entry.reviewed_at
        )
        if after.due != entry.due_at:
            yield _wrong(entry, "due_at", entry.due_at, after.due)
        yield from self._keep(entry, after)

    def _before(self, entry: Entry, parameters: Parameters) -> tuple[Card, str, datetime] | None:
        """What the entry built on, by the parameters it was made with."""
        node = self.nodes.get(entry.previous_id) if entry.previous_id is not None else None
        if node is None:
            return None
        if node.entry.parameters_id == entry.parameters_id:
            return node.card, node.text, node.entry.reviewed_at
        memory = recompute(map(_parsed, self._chain(node.entry)), parameters)
        assert memory is not None
        return _card(memory), json.dumps(memory), node.entry.reviewed_at

    def _chain(self, entry: Entry) -> list[Entry]:
        """The entries an entry follows from, itself the last."""
        chain = [entry]
        while (previous := chain[-1].previous_id) is not None and previous in self.nodes:
            chain.append(self.nodes[previous].entry)
        return chain[::-1]

    def _keep(self, entry: Entry, after: Card) -> Iterator[Mismatch]:
        expected = _text(after, entry)
        self.nodes[entry.id] = _Node(after, expected, entry)
        if expected != entry.memory_after and not _same(expected, entry.memory_after):
            yield _wrong(entry, "memory_after", entry.memory_after, expected)


def _check_due(entry: Entry, known: bool, delay: timedelta, today: int, zone: ZoneInfo) -> Iterator[Mismatch]:
    """Whether the date that was chosen is one of those that might have been."""
    if not known:
        if entry.due_at != entry.reviewed_at + delay:
            yield _wrong(entry, "due_at", entry.due_at, entry.reviewed_at + delay)
        return
    around = range(delay.days, delay.days + 1)
    if delay.days >= spreading.SHORTEST_FUZZED_DAYS:
        around = spreading.candidates(delay.days, spreading.seed(entry.card_id, entry.repetition)[0])[1]
    due_day = day_number(entry.due_at, zone, entry.day_starts_hour)
    if due_day - today not in around or day_start(due_day, zone, entry.day_starts_hour) != entry.due_at:
        yield _wrong(entry, "due_at", entry.due_at, f"the start of a day {around[0]} to {around[-1]} days later")


def _card(memory: Mapping[str, Any]) -> Card:
    return Card(0, State(memory["state"]), memory["step"], memory["stability"], memory["difficulty"], AT)


def _text(card: Card, entry: Entry) -> str:
    """The memory as it is stored: JSON writes a float as Python does."""
    step = "null" if card.step is None else card.step
    return (
        f'{{"state": {card.state.value}, "step": {step}, "stability": {card.stability!r}, '
        f'"difficulty": {card.difficulty!r}, "due": "{entry.due_at.isoformat()}", '
        f'"last_review": "{entry.reviewed_at.isoformat()}"}}'
    )


def _same(expected: str, stored: str | None) -> bool:
    """Whether two texts say the same: only a mismatch pays for reading them."""
    return stored is not None and bool(json.loads(expected) == json.loads(stored))


def _parsed(entry: Entry) -> Any:
    return _Parsed(
        entry.kind, entry.rating, entry.reviewed_at, entry.due_at, entry.time_zone, entry.day_starts_hour,
        None if entry.memory_before is None else json.loads(entry.memory_before), json.loads(entry.memory_after),
    )  # fmt: skip


class _Parsed(NamedTuple):
    kind: str
    rating: int
    reviewed_at: datetime
    due_at: datetime
    time_zone: str
    day_starts_hour: int
    memory_before: dict[str, Any] | None
    memory_after: dict[str, Any]


def _wrong(entry: Entry, name: str, stored: Any, expected: Any) -> Mismatch:
    return Mismatch(entry.card_id, entry.id, name, stored, expected)
