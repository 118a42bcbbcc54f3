"""All cards of a learner with where each stands: to browse, to cram, to look one up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from sqlalchemy.orm import Session

from app.content.cards import Card
from app.core.moment import Moment
from app.study import queries
from app.study.fsrs import scheduling
from app.study.fsrs.scheduling import Rules
from app.study.models import CardState, Review
from app.study.policy import policy_for, rules_of
from app.study.queue.agenda import Filter

if TYPE_CHECKING:  # loading it loads every kind of content, which an import does without
    from app.content.catalogue import Catalogue

PER_PAGE = 50


@dataclass(frozen=True)
class Listed:
    """A card in a list. `recall` is the probability, in 0..1, of remembering it now; None for a new card."""

    card: Card
    standing: str
    due_at: datetime | None
    recall: float | None
    reviews: int
    lapses: int
    is_flagged: bool
    note: str

    @property
    def is_hard(self) -> bool:
        return self.lapses >= scheduling.LEECH_LAPSES


@dataclass(frozen=True)
class Shelf:
    """A page of a list of cards, and how many the list has."""

    cards: list[Listed]
    count: int
    page: int

    @property
    def pages(self) -> int:
        return max(1, -(-self.count // PER_PAGE))


def browse(
    session: Session,
    learner_id: int,
    catalogue: Catalogue,
    moment: Moment,
    wanted: Filter,
    among: Iterable[str] | None = None,
    page: int = 1,
) -> Shelf:
    """Page `page` of the cards that fit; in the order of `among` (what a search found), if that is given."""
    found = _fitting(session, learner_id, catalogue, moment, wanted, among)
    last = max(1, -(-len(found) // PER_PAGE))
    page = min(max(1, page), last)
    return Shelf(found[(page - 1) * PER_PAGE : page * PER_PAGE], len(found), page)


def cram(session: Session, learner_id: int, catalogue: Catalogue, moment: Moment, wanted: Filter) -> list[Listed]:
    """The cards that fit, the least known first, new ones last. Reading them changes nothing."""
    found = _fitting(session, learner_id, catalogue, moment, wanted, None)
    return sorted(found, key=lambda each: (each.recall is None, each.recall))


def history(session: Session, learner_id: int, card_id: str) -> list[Review]:
    """A card's reviews that stand, oldest first."""
    return queries.list_history(session, learner_id, card_id)


def _fitting(
    session: Session,
    learner_id: int,
    catalogue: Catalogue,
    moment: Moment,
    wanted: Filter,
    among: Iterable[str] | None,
) -> list[Listed]:
    cards: Mapping[str, Card] = queries.all_cards(session, learner_id, catalogue)
    chosen = cards.values() if among is None else [cards[card_id] for card_id in among if card_id in cards]
    states = {state.card_id: state for state in queries.list_states(session, learner_id)}
    rules = rules_of(policy_for(session, learner_id, moment), moment.zone)
    listed = (_listed(card, states.get(card.id), moment.now, rules) for card in chosen if wanted.takes(card))
    return [each for each in listed if _is_in(each, wanted.state)]


def _listed(card: Card, state: CardState | None, now: datetime, rules: Rules) -> Listed:
    if state is None:
        return Listed(card, "new", None, None, 0, 0, False, "")
    memory = state.memory if state.revision == card.head.revision else None
    return Listed(
        card,
        _standing(state, memory, now),
        state.due_at if memory else None,
        scheduling.recall(memory, now, rules) if memory else None,
        state.reviews,
        state.lapses,
        state.flagged_at is not None,
        state.note or "",
    )


def _standing(state: CardState, memory: scheduling.Memory | None, now: datetime) -> str:
    """One word: what keeps it away comes before what it is."""
    if state.suspended_at:
        return "suspended"
    if state.buried_until and state.buried_until > now:
        return "buried"
    if memory is None:
        return "new"
    if scheduling.is_learning(memory):
        return "learning"
    return "due" if state.due_at and state.due_at <= now else "known"


def _is_in(listed: Listed, state: str) -> bool:
    if state == "hard":
        return listed.is_hard
    if state == "flagged":
        return listed.is_flagged
    if state == "noted":
        return bool(listed.note)
    return not state or listed.standing == state


def list_decks(session: Session, learner_id: int, catalogue: Catalogue) -> dict[str, str]:
    """The titles of the decks there are cards of, by id."""
    return {card.deck.id: card.deck.title for card in queries.all_cards(session, learner_id, catalogue).values()}
