"""What the review log and the states say about a learner. Reads indices and the newest answers, never the whole log.

Shares and times come from the newest `NEWEST` answers: enough for a retention to half a percent, and as fast after a
million reviews as after ten thousand. Days count whole, through an index.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any, NamedTuple, cast
from zoneinfo import ZoneInfo

from sqlalchemy import Table, bindparam, func, select
from sqlalchemy.orm import Session

from app.core.days import day_number, day_start
from app.core.share import Share
from app.study.fsrs.scheduling import KNOWN
from app.study.models import CardState, Review

NEWEST = 10_000
WEEK_DAYS, MATURE_DAYS = 7, 21
LONGEST_COUNTED_SECONDS = 600.0  # a card that stood open over lunch says nothing of how long it takes

_REVIEW, _STATE = cast(Table, Review.__table__).c, cast(Table, CardState.__table__).c
_COUNT_REVIEWS = select(func.count()).where(
    _REVIEW.learner_id == bindparam("learner"),
    _REVIEW.reviewed_at >= bindparam("since"),
    _REVIEW.reviewed_at < bindparam("until"),
    _REVIEW.undone_at.is_(None),
)
_COUNT_DUE = select(func.count()).where(
    _STATE.learner_id == bindparam("learner"),
    _STATE.due_at >= bindparam("since"),
    _STATE.due_at < bindparam("until"),
    _STATE.suspended_at.is_(None),
)
_NEWEST = (
    select(
        _REVIEW.card_id,
        _REVIEW.phase,
        _REVIEW.level,
        _REVIEW.rating,
        _REVIEW.verdict,
        _REVIEW.elapsed_milliseconds,
        _REVIEW.reviewed_at,
        _REVIEW.memory_before,
    )
    .where(_REVIEW.learner_id == bindparam("learner"), _REVIEW.undone_at.is_(None), _REVIEW.kind == "review")
    .order_by(_REVIEW.id.desc())
    .limit(NEWEST)
)
_MEMORIES = select(_STATE.card_id, _STATE.memory, _STATE.last_review_at).where(
    _STATE.learner_id == bindparam("learner"), _STATE.due_at.is_not(None)
)


class Answer(NamedTuple):
    """One review: seconds are None where nobody counted, stability and days where the card was not known before."""

    card_id: str
    phase: int
    level: int
    rating: int
    verdict: str | None
    seconds: float | None
    stability: float | None
    elapsed_days: int | None


class Memory(NamedTuple):
    """What is remembered of a card: stability in days, difficulty 1 to 10, study days since the last review."""

    card_id: str
    stability: float
    difficulty: float
    elapsed_days: int


@dataclass(frozen=True)
class Retention:
    """How many known cards were recalled, by how long they had been known for, and what FSRS expected."""

    name: str
    says: str
    share: Share
    expected: float | None


def count_by_day(session: Session, learner_id: int, first: int, last: int, zone: ZoneInfo) -> list[int]:
    """Reviews that stand on each study day from `first` to `last` (ordinals)."""
    return _count(session, _COUNT_REVIEWS, learner_id, [day_start(day, zone) for day in range(first, last + 2)])


def count_due_by_day(session: Session, learner_id: int, first: int, days: int, zone: ZoneInfo) -> list[int]:
    """Cards due on each of `days` study days from `first`; what is overdue counts for the first."""
    bounds = [day_start(day, zone) for day in range(first, first + days + 1)]
    bounds[0] = datetime.min.replace(tzinfo=bounds[0].tzinfo, year=1970)
    return _count(session, _COUNT_DUE, learner_id, bounds)


def newest_answers(session: Session, learner_id: int, zone: ZoneInfo) -> list[Answer]:
    """The newest answers that stand, newest first."""
    rows = session.connection().execute(_NEWEST, {"learner": learner_id})
    return [_answer(*row, zone) for row in rows]


def memories(session: Session, learner_id: int, now: datetime, zone: ZoneInfo) -> list[Memory]:
    """What is remembered of every card that was met."""
    today = day_number(now, zone)
    rows = session.connection().execute(_MEMORIES, {"learner": learner_id})
    return [
        Memory(card_id, memory["stability"], memory["difficulty"], max(0, today - day_number(last, zone)))
        for card_id, memory, last in rows
        if memory is not None and last is not None
    ]


def retention(answers: Sequence[Answer], decay: float) -> list[Retention]:
    """Recall of known cards by maturity, which is the stability they had. First answers of a day only."""
    factor = 0.9 ** (-1 / decay) - 1
    known = [each for each in answers if each.phase == KNOWN and each.stability and each.elapsed_days]
    groups = (
        ("New", f"held up to {WEEK_DAYS} days", 0.0, float(WEEK_DAYS)),
        ("Young", f"held {WEEK_DAYS} to {MATURE_DAYS} days", float(WEEK_DAYS), float(MATURE_DAYS)),
        ("Mature", f"held {MATURE_DAYS} days and more", float(MATURE_DAYS), float("inf")),
        ("All", "", 0.0, float("inf")),
    )
    found = []
    for name, says, least, most in groups:
        some = [each for each in known if least <= (each.stability or 0) < most]
        expected = [(1 + factor * (each.elapsed_days or 0) / (each.stability or 1)) ** -decay for each in some]
        share = Share(sum(each.rating > 1 for each in some), len(some))
        found.append(Retention(name, says, share, sum(expected) / len(expected) if expected else None))
    return found


def calibration(answers: Sequence[Answer]) -> dict[int, Share]:
    """By the level the learner pressed: how often the machine found the answer right. Only what it could judge."""
    found = {}
    for level in range(1, 6):
        judged = [each.verdict for each in answers if each.level == level and each.verdict in ("correct", "wrong")]
        if judged:
            found[level] = Share(judged.count("correct"), len(judged))
    return found


def seconds_of(answers: Sequence[Answer]) -> dict[str, list[float]]:
    """Seconds each answer took, by card, without those left open."""
    found: dict[str, list[float]] = {}
    for each in answers:
        if each.seconds is not None and each.seconds <= LONGEST_COUNTED_SECONDS:
            found.setdefault(each.card_id, []).append(each.seconds)
    return found


def _count(session: Session, statement: Any, learner_id: int, bounds: Sequence[datetime]) -> list[int]:
    connection = session.connection()
    return [
        int(connection.execute(statement, {"learner": learner_id, "since": since, "until": until}).scalar_one())
        for since, until in pairwise(bounds)
    ]


def _answer(
    card_id: str,
    phase: int,
    level: int,
    rating: int,
    verdict: str | None,
    milliseconds: int | None,
    at: datetime,
    before: dict[str, Any] | None,
    zone: ZoneInfo,
) -> Answer:
    seconds = None if milliseconds is None else milliseconds / 1000
    if before is None:
        return Answer(card_id, phase, level, rating, verdict, seconds, None, None)
    last = datetime.fromisoformat(before["last_review"])
    elapsed = max(0, day_number(at, zone) - day_number(last, zone))
    return Answer(card_id, phase, level, rating, verdict, seconds, before["stability"], elapsed)
