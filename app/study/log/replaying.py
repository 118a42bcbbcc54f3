"""Rebuilding memories from the review log, and checking that every entry follows from those before it. Pure.

An entry that does not follow is named with what was expected; nothing is repaired here. Entries written by the rules of
a former release are checked by those rules, each from the memory it says it started with.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple, Protocol
from zoneinfo import ZoneInfo

from fsrs import Card, Rating, State

from app.core.days import day_number, day_start
from app.study.fsrs import scheduling
from app.study.fsrs.parameters import Parameters
from app.study.fsrs.scheduling import (
    MEMORY_FIELDS,
    NEW,
    NOT_REVIEWED,
    RULES_NAME,
    Rules,
    place,
    rate,
    scheduler_of,
    step_of,
)


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
    undone_at: object


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
    rules = Rules(ZoneInfo("UTC"), parameters=parameters)  # the zone and the retention move dates, not memories
    scheduler = rules.scheduler
    last: Reviewed | None = None
    memory: Mapping[str, Any] | None = None
    for each in history:
        rating = Rating(each.rating)
        if each.kind == "import":
            memory = each.memory_after
        elif each.kind == "placement":
            memory = place(rating, rules).memory
        elif last is None or each.memory_before is None:
            memory = rate(None, rating, 0, scheduler).memory
        else:
            zone, hour = ZoneInfo(each.time_zone), each.day_starts_hour
            elapsed = day_number(each.reviewed_at, zone, hour) - day_number(last.reviewed_at, zone, hour)
            memory = rate(memory, rating, max(0, elapsed), scheduler).memory
        last = each
    if last is None or memory is None:
        return None
    return _dated(memory, last)


class _Node(NamedTuple):
    """A card after an entry: what is remembered, the same as it is stored, and the entry."""

    memory: Mapping[str, Any]
    text: str
    entry: Entry


@dataclass
class Checker:
    """Checks the entries of one card after another."""

    parameters_of: Callable[[str], Parameters | None]
    nodes: dict[int, _Node] = field(default_factory=dict)

    def check_card(self, entries: Iterable[Entry]) -> list[Mismatch]:
        """Everything that does not follow in the log of one card, in the order it was written."""
        self.nodes.clear()
        found: list[Mismatch] = []
        for entry in entries:
            parameters = self.parameters_of(entry.parameters_id)
            if parameters is None:
                found.append(Mismatch(entry.card_id, entry.id, "parameters_id", entry.parameters_id, "a set we have"))
            elif not entry.scheduler.startswith(RULES_NAME):
                found += self._check_former(entry, parameters)
            elif entry.kind == "review":
                found += self._check_review(entry, parameters)
            else:
                found += self._check_start(entry, parameters)
        return found

    def _check_review(self, entry: Entry, parameters: Parameters) -> list[Mismatch]:
        found: list[Mismatch] = []
        zone, hour = ZoneInfo(entry.time_zone), entry.day_starts_hour
        today = day_number(entry.reviewed_at, zone, hour)
        scheduler = scheduler_of(parameters, entry.desired_retention)
        before = self._before(entry, parameters)
        if before is None:
            step = rate(None, Rating(entry.rating), 0, scheduler)
            phase = NEW
            if entry.memory_before is not None:
                found.append(_wrong(entry, "memory_before", entry.memory_before, "none"))
        else:
            elapsed = max(0, today - day_number(before.entry.reviewed_at, zone, hour))
            step = rate(before.memory, Rating(entry.rating), elapsed, scheduler)
            phase = before.memory["state"]
            if before.text != entry.memory_before and not _same(before.text, entry.memory_before):
                found.append(_wrong(entry, "memory_before", entry.memory_before, before.text))
        if phase != entry.phase:
            found.append(_wrong(entry, "phase", entry.phase, phase))
        if step.days is not None:
            found += _check_day(entry, step.days, today, zone)
        elif entry.due_at != entry.reviewed_at + step.delay:
            found.append(_wrong(entry, "due_at", entry.due_at, entry.reviewed_at + step.delay))
        return found + self._keep(entry, step.memory)

    def _check_start(self, entry: Entry, parameters: Parameters) -> list[Mismatch]:
        """A placement, whose memory follows from its rating, or an import, whose memory is what it says."""
        found = []
        if entry.phase != NOT_REVIEWED:
            found.append(_wrong(entry, "phase", entry.phase, NOT_REVIEWED))
        if entry.kind == "import":
            return found + self._keep(entry, json.loads(entry.memory_after))
        zone = ZoneInfo(entry.time_zone)
        today = day_number(entry.reviewed_at, zone, entry.day_starts_hour)
        step = place(Rating(entry.rating), Rules(zone, entry.desired_retention, parameters))
        assert step.days is not None, "a placed card is known"
        found += _check_day(entry, step.days, today, zone)
        return found + self._keep(entry, step.memory)

    def _check_former(self, entry: Entry, parameters: Parameters) -> list[Mismatch]:
        """Rules before study days: py-fsrs on the clock, without fuzz."""
        card, found = Card(0, due=entry.reviewed_at), []
        if entry.memory_before is not None:
            stored = json.loads(entry.memory_before)
            last = datetime.fromisoformat(stored["last_review"])
            fields = (stored["step"], stored["stability"], stored["difficulty"])
            card = Card(0, State(stored["state"]), *fields, entry.reviewed_at, last)
        scheduler = scheduler_of(parameters, entry.desired_retention)
        after, _ = scheduler.review_card(card, Rating(entry.rating), entry.reviewed_at)
        if after.due != entry.due_at:
            found.append(_wrong(entry, "due_at", entry.due_at, after.due))
        return found + self._keep(entry, step_of(after, entry.reviewed_at).memory)

    def _before(self, entry: Entry, parameters: Parameters) -> _Node | None:
        """What the entry built on, by the parameters it was made with."""
        node = self.nodes.get(entry.previous_id) if entry.previous_id is not None else None
        if node is None or node.entry.parameters_id == entry.parameters_id:
            return node
        memory = recompute(map(_parsed, self._chain(node.entry)), parameters)
        assert memory is not None
        return _Node(memory, json.dumps(memory), node.entry)

    def _chain(self, entry: Entry) -> list[Entry]:
        """The entries an entry follows from, itself the last."""
        chain = [entry]
        while (previous := chain[-1].previous_id) is not None and previous in self.nodes:
            chain.append(self.nodes[previous].entry)
        return chain[::-1]

    def _keep(self, entry: Entry, memory: Mapping[str, object]) -> list[Mismatch]:
        """Compare what the entry says is remembered after it; what follows builds on what was computed."""
        kept = _dated(memory, entry)
        expected = json.dumps(kept)
        self.nodes[entry.id] = _Node(kept, expected, entry)
        if expected == entry.memory_after or _same(expected, entry.memory_after):
            return []
        return [_wrong(entry, "memory_after", entry.memory_after, expected)]


def _dated(memory: Mapping[str, Any], last: Any) -> dict[str, Any]:
    """The memory as it is stored: with the dates of the entry that left it."""
    fields = {name: memory[name] for name in MEMORY_FIELDS}
    return {**fields, "due": last.due_at.isoformat(), "last_review": last.reviewed_at.isoformat()}


def _check_day(entry: Entry, days: int, today: int, zone: ZoneInfo) -> list[Mismatch]:
    """Whether the day that was chosen is one of those that might have been."""
    around = range(days, days + 1)
    if days >= scheduling.SHORTEST_FUZZED_DAYS:
        around = scheduling.candidate_days(days, scheduling.fuzz_seed(entry.card_id, entry.repetition)[0])[1]
    # hours that a zone puts in or leaves out do not make another day of it
    chosen = (entry.due_at - day_start(today, zone, entry.day_starts_hour) + timedelta(hours=3)).days
    if chosen in around and day_start(today + chosen, zone, entry.day_starts_hour) == entry.due_at:
        return []
    if any(day_start(today + day, zone, entry.day_starts_hour) == entry.due_at for day in around):
        return []
    return [_wrong(entry, "due_at", entry.due_at, f"the start of a day {around[0]} to {around[-1]} days later")]


def _same(expected: str, stored: str | None) -> bool:
    """Whether two texts say the same: only a mismatch pays for reading them."""
    return stored is not None and bool(json.loads(expected) == json.loads(stored))


def _parsed(entry: Entry) -> Any:
    return _Parsed(
        entry.kind,
        entry.rating,
        entry.reviewed_at,
        entry.due_at,
        entry.time_zone,
        entry.day_starts_hour,
        None if entry.memory_before is None else json.loads(entry.memory_before),
        json.loads(entry.memory_after),
    )


class _Parsed(NamedTuple):
    kind: str
    rating: int
    reviewed_at: datetime
    due_at: datetime
    time_zone: str
    day_starts_hour: int
    memory_before: dict[str, object] | None
    memory_after: dict[str, Any]


def _wrong(entry: Entry, name: str, stored: object, expected: object) -> Mismatch:
    return Mismatch(entry.card_id, entry.id, name, stored, expected)
