"""Which cards a learner has no state of: the new ones, found without reading the ids of all that were ever met.

Cards are met in the order of introduction, so that most blocks of the catalogue have been met whole or not at all.
That a block was met whole is written down once (`MetBlock`) and stays true; only the others are looked at.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import chain
from typing import cast

from sqlalchemy import BindParameter, Table, bindparam, func, insert, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from app.content.cards import Card
from app.content.catalogue import Catalogue
from app.study.models import CardState, MetBlock
from app.study.queries import rows

MOST_NAMED = 1000  # in one IN; beyond it reading all ids of a learner is faster
_BETWEEN = "\n"
_STATE, _BLOCK = CardState.__table__.c, cast(Table, MetBlock.__table__)
_LEARNER: BindParameter[int] = bindparam("learner_id")
# All ids in one row, which the primary key's index holds: twenty thousand rows cost 48 ms, this one 2 ms.
_TOUCHED = select(func.aggregate_strings(_STATE.card_id, _BETWEEN)).where(_STATE.learner_id == _LEARNER)
_TOUCHED_OF = _TOUCHED.where(_STATE.card_id.in_(bindparam("card_ids", expanding=True)))
_MET = select(func.aggregate_strings(_BLOCK.c.block, _BETWEEN)).where(_BLOCK.c.learner_id == _LEARNER)


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
