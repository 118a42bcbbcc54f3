"""Reading what is to be answered today, and what was: the statements behind the agenda.

They read an index's few rows, but for the scan of a day's first look. What comes back is read by when it does. New
cards, of which there is no state, are found without reading the ids of all that were ever met: cards are met in the
order of introduction, so that most blocks of the catalogue have been met whole or not at all. That a block was met
whole is written down once (`MetBlock`) and stays true; only the others are looked at.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple, cast

from sqlalchemy import (
    BindParameter,
    Table,
    and_,
    bindparam,
    false,
    func,
    insert,
    select,
    true,
)
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from app.content.cards import Card
from app.study.fsrs.scheduling import KNOWN, NEW, NOT_REVIEWED
from app.study.models import CardState, MetBlock, Review
from app.study.queries import Standing, rows

if TYPE_CHECKING:  # loading it loads every kind of content, which an import does without
    from app.content.catalogue import Catalogue


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


_STATE, _REVIEW, _BLOCK = CardState.__table__.c, Review.__table__.c, cast(Table, MetBlock.__table__)
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
MOST_NAMED = 1000  # in one IN; beyond it reading all ids of a learner is faster
# All ids in one row, which the primary key's index holds: twenty thousand rows cost 48 ms, this one 2 ms.
_TOUCHED = select(func.aggregate_strings(_STATE.card_id, _BETWEEN)).where(_STATE.learner_id == _LEARNER)
_TOUCHED_OF = _TOUCHED.where(_STATE.card_id.in_(bindparam("card_ids", expanding=True)))
_MET = select(func.aggregate_strings(_BLOCK.c.block, _BETWEEN)).where(_BLOCK.c.learner_id == _LEARNER)


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


def list_unmet(session: Session, learner_id: int, catalogue: Catalogue, cards: Mapping[str, Card]) -> set[str]:
    """The ids of `cards` (the catalogue's and the learner's own) there is no state of, not even a mark."""
    met = _met_blocks(session, learner_id)
    own = cards.keys() - catalogue.cards.keys() if cards is not catalogue.cards else ()
    open_ids = [*chain.from_iterable(ids for block, ids in catalogue.card_blocks.items() if block not in met), *own]
    return _without_state(session, learner_id, open_ids, may_name=bool(met))


def note_met_blocks(session: Session, learner_id: int, catalogue: Catalogue) -> None:
    """Write down which blocks have been met whole since this was done last."""
    met = _met_blocks(session, learner_id)
    blocks = {block: ids for block, ids in catalogue.card_blocks.items() if block not in met}
    open_ids = list(chain.from_iterable(blocks.values()))
    unmet = _without_state(session, learner_id, open_ids, may_name=bool(met))
    values = [{"learner_id": learner_id, "block": block} for block, ids in blocks.items() if unmet.isdisjoint(ids)]
    if not values:
        return
    try:
        with session.begin_nested():
            session.connection().execute(insert(_BLOCK), values)
    except IntegrityError:
        pass  # another tab wrote the same


def _met_blocks(session: Session, learner_id: int) -> frozenset[str]:
    return _joined(rows(session, _MET, learner_id=learner_id).scalar_one())


def _without_state(session: Session, learner_id: int, card_ids: Collection[str], may_name: bool) -> set[str]:
    """Those of `card_ids` without a state. Naming them pays where most of what the learner met is not among them."""
    if not card_ids:
        return set()
    if may_name and len(card_ids) <= MOST_NAMED:
        found = rows(session, _TOUCHED_OF, learner_id=learner_id, card_ids=list(card_ids))
    else:
        found = rows(session, _TOUCHED, learner_id=learner_id)
    return set(card_ids).difference(_joined(found.scalar_one()))


def _joined(ids: str | None) -> frozenset[str]:
    return frozenset(ids.split(_BETWEEN) if ids else ())
