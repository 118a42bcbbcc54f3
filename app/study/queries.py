"""Reading what a learner may study, what they remember, and the log it follows from.

The statements of a review are built once: putting one together costs more than the database needs to answer it. Each
reads an index's few rows, so that a card is answered as fast after a million reviews as after none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple
from zoneinfo import ZoneInfo

from sqlalchemy import BindParameter, bindparam, func, select
from sqlalchemy.orm import Session

from app.content.cards import Card
from app.core.days import day_number, day_start
from app.core.errors import NotFound
from app.decks.shelf import find_own_card, own_cards
from app.study.models import CardState, ParameterSet, Review

if TYPE_CHECKING:  # loading it loads every kind of content, which an import does without
    from app.content.catalogue import Catalogue

MOST_NAMED = 5000  # in one IN: both databases take more


class State(NamedTuple):
    """All there is to know of a card that was touched: a row of `card_state`, to read."""

    revision: int
    version: int
    memory: Mapping[str, object] | None
    is_learning: bool
    due_at: datetime | None
    last_review_at: datetime | None
    reviews: int
    lapses: int
    available_at: datetime | None
    parameters_id: str | None
    last_review_id: int | None
    suspended_at: datetime | None
    buried_until: datetime | None
    flagged_at: datetime | None
    note: str | None


class Standing(NamedTuple):
    """Where a card stands, met or not."""

    card_id: str
    revision: int
    is_learning: bool
    due_at: datetime | None
    available_at: datetime | None
    suspended_at: datetime | None
    buried_until: datetime | None


# Plain columns, not mapped ones: the ORM's own handling of a row costs as much again as the row.
_STATE, _REVIEW = CardState.__table__.c, Review.__table__.c
_LEARNER: BindParameter[int] = bindparam("learner_id")
_OF_LEARNER = _STATE.learner_id == _LEARNER
_READ_STATE = select(*(_STATE[name] for name in State._fields)).where(
    _OF_LEARNER, _STATE.card_id == bindparam("card_id")
)
_STANDING = select(
    _STATE.card_id,
    _STATE.revision,
    _STATE.is_learning,
    _STATE.due_at,
    _STATE.available_at,
    _STATE.suspended_at,
    _STATE.buried_until,
).where(_OF_LEARNER)
_STANDING_OF = _STANDING.where(_STATE.card_id.in_(bindparam("card_ids", expanding=True)))
_NEWEST = (
    select(_REVIEW.id, _REVIEW.card_id)
    .where(_REVIEW.learner_id == _LEARNER, _REVIEW.undone_at.is_(None))
    .order_by(_REVIEW.id.desc())
    .limit(1)
)
_DUE_AT = (
    select(_STATE.due_at, func.count())
    .where(_OF_LEARNER, _STATE.due_at >= bindparam("since"), _STATE.due_at < bindparam("until"))
    .group_by(_STATE.due_at)
)


def rows(session: Session, statement: Any, **values: Any) -> Any:
    """The rows of a plain statement, in the session's transaction. What is not flushed yet is not seen."""
    return session.connection().execute(statement, values)


def find_card(session: Session, learner_id: int, catalogue: Catalogue, card_id: str) -> Card:
    """One card by its id, without reading all of them. Raises NotFound."""
    card = catalogue.cards.get(card_id) or find_own_card(session, learner_id, card_id)
    if card is None:
        raise NotFound(f"There is no card {card_id!r}. Accepted: {', '.join(list(catalogue.cards)[:3])} and so on.")
    return card


def all_cards(session: Session, learner_id: int, catalogue: Catalogue) -> Mapping[str, Card]:
    """Every card of this learner by id, in the order of introduction: the catalogue's and their own take turns."""
    own = own_cards(session, learner_id)
    if not own:
        return catalogue.cards
    turns = chain.from_iterable(zip_longest(catalogue.cards.items(), own.items()))
    return dict(pair for pair in turns if pair)


def list_revised(catalogue: Catalogue, cards: Mapping[str, Card]) -> list[str]:
    """Those of `cards` that no longer mean what they meant at first: only these may have been met and be new again."""
    own = cards.keys() - catalogue.cards.keys() if cards is not catalogue.cards else ()
    return [*catalogue.revised_cards, *(card_id for card_id in own if cards[card_id].head.revision != 1)]


def list_standing(session: Session, learner_id: int) -> list[Standing]:
    """Every card this learner ever touched. Reads everything: not for a review's path."""
    return list(map(Standing._make, rows(session, _STANDING, learner_id=learner_id)))


def list_standing_of(session: Session, learner_id: int, card_ids: Collection[str]) -> list[Standing]:
    """Where these cards stand, those that were ever touched."""
    found: list[Standing] = []
    wanted = list(card_ids)
    for start in range(0, len(wanted), MOST_NAMED):
        some = wanted[start : start + MOST_NAMED]
        found += map(Standing._make, rows(session, _STANDING_OF, learner_id=learner_id, card_ids=some))
    return found


def count_due_by_day(session: Session, learner_id: int, today: int, days: range, zone: ZoneInfo) -> dict[int, int]:
    """How many cards come back on each of `days`, counted from study day `today`; a day with none is missing."""
    if not days:
        return {}
    since, until = day_start(today + days.start, zone), day_start(today + days.stop, zone)
    found: dict[int, int] = {}
    for due_at, count in rows(session, _DUE_AT, learner_id=learner_id, since=since, until=until):
        day = day_number(due_at, zone) - today
        found[day] = found.get(day, 0) + count
    return found


def find_state(session: Session, learner_id: int, card_id: str) -> State | None:
    """Where a card stands, to read; None if it was never touched."""
    found = rows(session, _READ_STATE, learner_id=learner_id, card_id=card_id).one_or_none()
    return None if found is None else State._make(found)


def load_state(session: Session, learner_id: int, card_id: str) -> CardState | None:
    """The state itself, to change."""
    return session.get(CardState, (learner_id, card_id))


def list_states(session: Session, learner_id: int, card_ids: Iterable[str] | None = None) -> list[CardState]:
    """The states themselves, of all cards or of these."""
    query = select(CardState).where(CardState.learner_id == learner_id)
    if card_ids is not None:
        query = query.where(CardState.card_id.in_(list(card_ids)))
    return list(session.scalars(query))


def find_last_review(session: Session, learner_id: int) -> Review | None:
    """The newest review that stands: what undo takes back. What was imported is no answer, and is passed by."""
    query = (
        select(Review)
        .where(Review.learner_id == learner_id, Review.undone_at.is_(None), Review.kind != "import")
        .order_by(Review.id.desc())
        .limit(1)
    )
    return session.scalar(query)


def find_answer(session: Session, learner_id: int, card_id: str, version: int) -> Review | None:
    """The review that answered a showing, whether it still stands or not."""
    query = (
        select(Review)
        .where(Review.learner_id == learner_id, Review.card_id == card_id, Review.version == version)
        .order_by(Review.id.desc())
        .limit(1)
    )
    return session.scalar(query)


def list_history(session: Session, learner_id: int, card_id: str) -> list[Review]:
    """A card's reviews that stand, in the order they were made."""
    query = (
        select(Review)
        .where(Review.learner_id == learner_id, Review.card_id == card_id, Review.undone_at.is_(None))
        .order_by(Review.id)
    )
    return list(session.scalars(query))


def list_made_together(session: Session, review: Review) -> list[Review]:
    """The entries of a placement: they carry one time."""
    query = select(Review).where(
        Review.learner_id == review.learner_id,
        Review.reviewed_at == review.reviewed_at,
        Review.kind == review.kind,
        Review.undone_at.is_(None),
    )
    return list(session.scalars(query))


def has_reviews(session: Session, learner_id: int) -> bool:
    """Whether there is a review that stands."""
    return rows(session, _NEWEST, learner_id=learner_id).one_or_none() is not None


def find_parameters(session: Session, learner_id: int, parameters_id: str) -> tuple[float, ...] | None:
    """The values of a parameter set the log names."""
    found = session.get(ParameterSet, (learner_id, parameters_id))
    return None if found is None else tuple(found.parameters)
