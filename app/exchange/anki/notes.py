"""What both ways of an .apkg speak of: a note with one card, and when it is due. Pure."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from app.study.api import DEFAULT_PARAMETERS, Remembered, day_number, day_start

LEARNING_STEPS = 2
KNOWN = 2
MOST_DAYS = 36_500
_DECAY = DEFAULT_PARAMETERS[20]


@dataclass(frozen=True)
class AnkiNote:
    """A note of RankZero's own types, with the one card it has."""

    guid: str
    is_cloze: bool
    fields: tuple[str, ...]
    tags: tuple[str, ...]
    deck: str
    modified_at: datetime
    remembered: Remembered | None = None


@dataclass(frozen=True)
class CardRow:
    """The columns of a card that say when it is due."""

    type: int = 0
    queue: int = 0
    due: int = 0
    ivl: int = 0
    factor: int = 0
    reps: int = 0
    lapses: int = 0
    left: int = 0
    data: str = "{}"


def to_row(remembered: Remembered | None, position: int, first_day: int, zone: ZoneInfo) -> CardRow:
    """The columns of a card; `position` orders new ones, `first_day` is the collection's day 0."""
    known = remembered or Remembered()
    suspended = -1 if known.is_suspended else None
    if known.state is None or known.due_at is None or known.last_review_at is None:
        return CardRow(due=position, queue=suspended or 0)
    data = json.dumps(
        {
            "s": known.stability,
            "d": known.difficulty,
            "dr": 0.9,
            "decay": _DECAY,
            "lrt": int(known.last_review_at.timestamp()),
        },
        separators=(",", ":"),
    )
    row = CardRow(reps=known.reviews, lapses=known.lapses, data=data)
    due_day = day_number(known.due_at, zone)
    if known.state == KNOWN:
        interval = max(1, due_day - day_number(known.last_review_at, zone))
        return replace(row, type=2, queue=suspended or 2, due=due_day - first_day, ivl=interval, factor=2500)
    remaining = max(1, LEARNING_STEPS - (known.step or 0)) if known.state == 1 else 1
    due = int(known.due_at.timestamp())
    return replace(row, type=known.state, queue=suspended or 1, due=due, left=remaining * 1001)


@dataclass(frozen=True)
class Calendar:
    """How a collection counts days: its day 0, and the zone ours are counted in."""

    first_day: int
    zone: ZoneInfo

    def due_at(self, days: int) -> datetime:
        return day_start(self.first_day + max(-MOST_DAYS, min(days, MOST_DAYS)), self.zone)


def from_row(row: CardRow, calendar: Calendar, last_answer: datetime | None, now: datetime) -> Remembered | None:
    """What a card's columns say is remembered, or None for a new card.

    FSRS's own figures are taken as they are; a card known to the older scheduler gets those its interval and ease
    stand for. A card in its first steps without figures starts anew.
    """
    suspended = row.queue == -1
    data = _figures(row.data)
    reps, lapses = min(row.reps, 10**6), min(row.lapses, 10**6)
    if row.type == KNOWN:
        due_at = calendar.due_at(row.due)
        interval = max(1, min(row.ivl, MOST_DAYS))
        last = _last_review(data, last_answer) or day_start(day_number(due_at, calendar.zone) - interval, calendar.zone)
        stability, difficulty = data.get("s"), data.get("d")
        if stability is None or difficulty is None:
            stability, difficulty = from_ease(row.factor / 1000, interval)
        return Remembered(
            2, None, stability, difficulty, max(due_at, min(last, now)), min(last, now), max(1, reps), lapses, suspended
        )
    last_step = _last_review(data, last_answer)
    if row.type in (1, 3) and "s" in data and "d" in data and last_step:
        due = _moment(row.due) if row.due > 10**9 else calendar.due_at(row.due)
        step = max(0, LEARNING_STEPS - row.left % 1000) if row.type == 1 else 0
        last = min(last_step, now)
        return Remembered(
            row.type, min(step, 1), data["s"], data["d"], max(due or last, last), last, max(1, reps), lapses, suspended
        )
    return Remembered(is_suspended=True) if suspended else None


def from_ease(ease: float, interval_days: int, retention: float = 0.9) -> tuple[float, float]:
    """FSRS's stability and difficulty for a card of the older scheduler: fsrs-rs, `memory_state_from_sm2`."""
    weights = DEFAULT_PARAMETERS
    stability = max(float(interval_days), 0.1)  # at a retention of 0.9 the interval is the stability
    growth = math.exp(weights[8]) * stability ** -weights[9] * math.expm1((1 - retention) * weights[10])
    difficulty = 11.0 - (max(ease, 1.3) - 1.0) / growth
    return stability, min(max(difficulty, 1.0), 10.0)


def _figures(text: str) -> dict[str, Any]:
    """Stability, difficulty and last review of a card's data, where they are figures that can be."""
    try:
        found = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    if not isinstance(found, Mapping):
        return {}
    bounds = {"s": (0.001, 36_500.0), "d": (1.0, 10.0), "lrt": (1.0, 1e11)}
    return {
        name: float(found[name])
        for name, (low, high) in bounds.items()
        if isinstance(found.get(name), int | float) and low <= found[name] <= high
    }


def _last_review(data: Mapping[str, float], last_answer: datetime | None) -> datetime | None:
    return (_moment(data["lrt"]) if "lrt" in data else None) or last_answer


def _moment(seconds: float) -> datetime | None:
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return None
