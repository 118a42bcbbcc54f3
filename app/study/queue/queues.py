"""Reading what is to be answered today, and what was: the statements behind the agenda.

They read an index's few rows, but for the scan of a day's first look.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import (
    BindParameter,
    and_,
    bindparam,
    false,
    func,
    select,
    true,
)
from sqlalchemy.orm import Session

from app.study.fsrs.scheduling import KNOWN, NEW, NOT_REVIEWED
from app.study.models import CardState, Review
from app.study.queries import Standing, rows


class Scheduled(NamedTuple):
    """What choosing needs to know of a card that comes back; `is_ready` where its minutes or days are over."""

    card_id: str
    revision: int
    lapses: int
    is_flagged: bool
    is_ready: bool


class Day(NamedTuple):
    """Answers of one day that stand: all, those to new cards, those to known ones, and the clusters they were of."""

    done: int
    introduced: int
    repeated: int
    clusters: frozenset[str]


_STATE, _REVIEW = CardState.__table__.c, Review.__table__.c
_LEARNER: BindParameter[int] = bindparam("learner_id")
_OF_LEARNER = _STATE.learner_id == _LEARNER
_SCHEDULED = (
    select(
        _STATE.card_id,
        _STATE.revision,
        _STATE.lapses,
        _STATE.flagged_at.is_not(None).label("is_flagged"),
        (_STATE.available_at <= bindparam("now")).label("is_ready"),
    )
    .where(_OF_LEARNER, _STATE.is_learning == bindparam("is_learning"), _STATE.available_at <= bindparam("until"))
    .order_by(_STATE.available_at, _STATE.position)
)
_RELEASED = (
    select(
        _STATE.card_id,
        _STATE.revision,
        _STATE.lapses,
        _STATE.flagged_at.is_not(None).label("is_flagged"),
        true().label("is_ready"),
        (_STATE.due_at <= bindparam("now")).label("is_due"),
    )
    .where(
        _OF_LEARNER,
        _STATE.is_learning == false(),
        _STATE.due_at.is_not(None),
        _STATE.suspended_at.is_(None),
        _STATE.buried_until.is_(None) | (_STATE.buried_until <= bindparam("now")),
    )
    .order_by(_STATE.position)
)
_BETWEEN = "\n"
_WITHOUT_MEMORY = select(*(_STATE[name] for name in Standing._fields)).where(_OF_LEARNER, _STATE.due_at.is_(None))
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
_CLUSTERS = select(_REVIEW.cluster).where(_OF_DAY, _REVIEW.cluster.is_not(None)).distinct().subquery()
_DAY = select(
    func.count(),
    func.count().filter(_REVIEW.phase == NEW),
    func.count().filter(_REVIEW.phase == KNOWN),
    select(func.aggregate_strings(_CLUSTERS.c.cluster, _BETWEEN)).scalar_subquery(),
).where(_OF_DAY)


def list_scheduled(
    session: Session, learner_id: int, is_learning: bool, now: datetime, until: datetime
) -> list[Scheduled]:
    """Cards in their learning steps, or known ones, that may be shown by `until`, the soonest first.

    Known cards come back when a study day starts; within a day their order is by `position`, so that decks mix.
    """
    found = rows(session, _SCHEDULED, learner_id=learner_id, is_learning=is_learning, now=now, until=until)
    return list(map(Scheduled._make, found))


def list_chosen(
    session: Session, learner_id: int, now: datetime, brought: Collection[str], held: Collection[str]
) -> list[Scheduled]:
    """The known cards of a day that a plan chose and nothing wrote down yet: those due, more `brought`, less `held`."""
    more, less = frozenset(brought), frozenset(held)
    found = rows(session, _RELEASED, learner_id=learner_id, now=now)
    return [
        Scheduled._make(row[:-1]) for row in found if row.card_id in more or (row.is_due and row.card_id not in less)
    ]


def list_without_memory(session: Session, learner_id: int) -> list[Standing]:
    """Cards with a state and no memory: only flagged, noted or suspended, or their only review was undone."""
    return list(map(Standing._make, rows(session, _WITHOUT_MEMORY, learner_id=learner_id)))


def find_next_due(session: Session, learner_id: int, now: datetime) -> datetime | None:
    """When the next card returns after `now`."""
    found = [rows(session, query, learner_id=learner_id, now=now).scalar() for query in _NEXT]
    return min((at for at in found if at is not None), default=None)


def read_day(session: Session, learner_id: int, since: datetime, until: datetime) -> Day:
    """What was answered in a time and stands. A placement is no answer."""
    done, introduced, repeated, clusters = rows(session, _DAY, learner_id=learner_id, since=since, until=until).one()
    return Day(done, introduced, repeated, frozenset(clusters.split(_BETWEEN) if clusters else ()))
