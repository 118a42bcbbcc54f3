"""Reading what is to be answered today, and what was: the statements behind the agenda.

They read an index's few rows, but for the scan of a day's first look.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import (
    BindParameter,
    Subquery,
    and_,
    bindparam,
    false,
    func,
    or_,
    select,
    true,
    union_all,
)
from sqlalchemy.orm import Session

from app.study.fsrs.scheduling import KNOWN, NEW, NOT_REVIEWED
from app.study.models import CardState, Review
from app.study.queries import rows


class Scheduled(NamedTuple):
    """What choosing needs to know of a card that comes back, without its memory."""

    card_id: str
    revision: int
    lapses: int
    flagged_at: datetime | None
    available_at: datetime


class Queue(NamedTuple):
    """Cards that come back by a time, the soonest first, as many as were asked for, and how many there are."""

    read: list[Scheduled]
    total: int


class Scanned(NamedTuple):
    """What a scan of all cards says of one: whether it was met, is suspended or buried, and is known and due today."""

    card_id: str
    revision: int
    is_met: bool
    is_away: bool
    is_due: bool


class Day(NamedTuple):
    """Answers of one day that stand: all, those to new cards, those to known ones, and the clusters they were of."""

    done: int
    introduced: int
    repeated: int
    clusters: frozenset[str]


_STATE, _REVIEW = CardState.__table__.c, Review.__table__.c
_LEARNER: BindParameter[int] = bindparam("learner_id")
_OF_LEARNER = _STATE.learner_id == _LEARNER
_SCHEDULED = tuple(_STATE[name] for name in Scheduled._fields)


def _queue(learning: bool) -> Subquery:
    """Those in their first steps, or the known ones; each row says how many there are in all."""
    until, most = ("until", "most_learning") if learning else ("now", "most_known")
    which = and_(_OF_LEARNER, _STATE.is_learning == (true() if learning else false()))
    which = and_(which, _STATE.available_at <= bindparam(until))
    total = select(func.count()).select_from(CardState.__table__).where(which).scalar_subquery()
    return (
        select(*_SCHEDULED, _STATE.is_learning, _STATE.position, total.label("total"))
        .where(which)
        .order_by(_STATE.available_at, _STATE.position)
        .limit(bindparam(most))
        .subquery()
    )


_BOTH = union_all(*(select(_queue(learning)) for learning in (True, False))).subquery()
_QUEUES = select(_BOTH).order_by(_BOTH.c.available_at, _BOTH.c.position)
_IS_AWAY = or_(_STATE.suspended_at.is_not(None), func.coalesce(_STATE.buried_until > bindparam("now"), false()))
_SCAN = select(
    _STATE.card_id,
    _STATE.revision,
    _STATE.due_at.is_not(None).label("is_met"),
    _IS_AWAY.label("is_away"),
    func.coalesce(and_(_STATE.is_learning == false(), _STATE.available_at < bindparam("until")), false()).label(
        "is_due"
    ),
).where(_OF_LEARNER)
_NEXT = [
    select(func.min(_STATE.available_at)).where(
        _OF_LEARNER, _STATE.is_learning == learning, _STATE.available_at > bindparam("now")
    )
    for learning in (true(), false())
]
_OF_DAY = and_(
    _REVIEW.learner_id == _LEARNER,
    _REVIEW.reviewed_at >= bindparam("since"),
    _REVIEW.reviewed_at < bindparam("until"),
    _REVIEW.undone_at.is_(None),
    _REVIEW.phase < NOT_REVIEWED,
)
# All of it in one row: a row for each cluster costs more than the joining (measured with a hundred clusters).
_BETWEEN = "\n"
_CLUSTERS = select(_REVIEW.cluster).where(_OF_DAY, _REVIEW.cluster.is_not(None)).distinct().subquery()
_DAY = select(
    func.count(),
    func.count().filter(_REVIEW.phase == NEW),
    func.count().filter(_REVIEW.phase == KNOWN),
    select(func.aggregate_strings(_CLUSTERS.c.cluster, _BETWEEN)).scalar_subquery(),
).where(_OF_DAY)


def read_queues(
    session: Session, learner_id: int, until: datetime, most_learning: int, now: datetime, most_known: int
) -> tuple[Queue, Queue]:
    """Cards in their first steps that come back by `until`, and known ones that came back by `now`, in one statement.

    Known cards come back when a study day starts; within a day their order is by `position`, so that decks mix.
    """
    values = {"until": until, "most_learning": most_learning, "now": now, "most_known": most_known}
    found = list(rows(session, _QUEUES, learner_id=learner_id, **values))
    return _queue_of(found, is_learning=True), _queue_of(found, is_learning=False)


def _queue_of(found: list[Any], is_learning: bool) -> Queue:
    mine = [row for row in found if row.is_learning == is_learning]
    width = len(Scheduled._fields)
    return Queue([Scheduled._make(row[:width]) for row in mine], mine[0].total if mine else 0)


def scan(session: Session, learner_id: int, now: datetime, until: datetime) -> Iterator[Scanned]:
    """Every card this learner ever touched, judged by the database: turning their times into Python's takes longer."""
    return map(Scanned._make, rows(session, _SCAN, learner_id=learner_id, now=now, until=until))


def find_next_due(session: Session, learner_id: int, now: datetime) -> datetime | None:
    """When the next card returns after `now`."""
    found = [rows(session, query, learner_id=learner_id, now=now).scalar() for query in _NEXT]
    return min((at for at in found if at is not None), default=None)


def read_day(session: Session, learner_id: int, since: datetime, until: datetime) -> Day:
    """What was answered in a time and stands. A placement is no answer."""
    done, introduced, repeated, clusters = rows(session, _DAY, learner_id=learner_id, since=since, until=until).one()
    return Day(done, introduced, repeated, frozenset(clusters.split(_BETWEEN) if clusters else ()))
