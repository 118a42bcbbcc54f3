"""A short test of a deck's new cards, so that somebody who knows the field does not start at nought.

What was known skips its first steps; where most of the sample was known, so do the deck's other new cards. Every card
that is moved gets an entry in the log, of kind `placement`: a replay moves it again, one undo takes all of them back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

from fsrs import Rating
from sqlalchemy.orm import Session

from app.content.cards import Card
from app.core.days import today
from app.core.errors import DomainError, NotFound, Violation
from app.core.moment import Moment
from app.study import queries
from app.study.fsrs import scheduling
from app.study.log import recording
from app.study.policy import Policy, policy_for, rules_of

if TYPE_CHECKING:  # loading it loads every kind of content, which an import does without
    from app.content.catalogue import Catalogue

SAMPLE = 6
FEWEST_NEW = 4  # below that, answering the cards is shorter than a test
ANSWERS = {"known": 1.0, "partly": 0.5, "unknown": 0.0}
EASY_FROM, GOOD_FROM = 0.9, 0.65  # share of the sample from which the rest of the deck is placed like this
_LEVEL = {Rating.Easy: 5, Rating.Good: 4}


@dataclass(frozen=True)
class Placeable:
    """A deck with new cards, and whether there are enough for a test."""

    id: str
    title: str
    new: int
    cards: int

    @property
    def can_be_tested(self) -> bool:
        return self.new >= FEWEST_NEW


@dataclass(frozen=True)
class Placed:
    """What a test did."""

    known: float
    moved: int
    new: int


def list_placeable(session: Session, learner_id: int, catalogue: Catalogue) -> list[Placeable]:
    """Every deck of the learner, with how many of its cards are new."""
    decks: dict[str, list[Card]] = {}
    for card in queries.all_cards(session, learner_id, catalogue).values():
        decks.setdefault(card.deck.id, []).append(card)
    met = _touched(session, learner_id)
    return [
        Placeable(id_, cards[0].deck.title, sum(card.id not in met for card in cards), len(cards))
        for id_, cards in decks.items()
    ]


def sample(session: Session, learner_id: int, catalogue: Catalogue, deck_id: str) -> list[Card]:
    """The cards a test asks: from all parts of the deck, the same until one of them was met. Raises NotFound."""
    new = _new_cards(session, learner_id, catalogue, deck_id)
    wanted = min(SAMPLE, len(new))
    parts = [new[len(new) * i // wanted : len(new) * (i + 1) // wanted] for i in range(wanted)]
    return [min(part, key=lambda card: sha256(f"{learner_id}:{card.id}".encode()).digest()) for part in parts]


def place(
    session: Session, learner_id: int, catalogue: Catalogue, deck_id: str, answers: Mapping[str, str], moment: Moment
) -> Placed:
    """Take the answers of a test (card id to known, partly or unknown). Raises DomainError, NotFound."""
    new = {card.id: card for card in _new_cards(session, learner_id, catalogue, deck_id)}
    wrong = [
        Violation(card_id, answer, "It cannot be taken.", "known, partly or unknown, for a new card of the deck")
        for card_id, answer in answers.items()
        if card_id not in new or answer not in ANSWERS
    ]
    if wrong or not answers:
        raise DomainError("The test was not counted." if answers else "Nothing was answered.", wrong)
    share = sum(ANSWERS[answer] for answer in answers.values()) / len(answers)
    rest = Rating.Easy if share >= EASY_FROM else Rating.Good if share >= GOOD_FROM else None
    tested = {"known": Rating.Easy, "partly": Rating.Good, "unknown": None}
    ratings = {card_id: tested[answers[card_id]] if card_id in answers else rest for card_id in new}
    policy = policy_for(session, learner_id, moment)
    later = range(1, scheduling.LONGEST_DAYS + 1)
    load = queries.count_due_by_day(session, learner_id, today(moment), later, moment.zone)
    moved = [(new[card_id], rating) for card_id, rating in ratings.items() if rating is not None]
    for card, rating in moved:
        _start(session, learner_id, card, rating, policy, load, moment)
    return Placed(share, len(moved), len(new))


def _start(
    session: Session, learner_id: int, card: Card, rating: Rating, policy: Policy, load: dict[int, int], moment: Moment
) -> None:
    state = queries.find_state(session, learner_id, card.id)
    rules = rules_of(policy, moment.zone)
    step = scheduling.place(rating, rules)
    assert step.days is not None
    fraction, _ = scheduling.fuzz_seed(card.id, state.reviews if state else 0)
    days = scheduling.choose_day(step.days, fraction, load)
    load[days] = load.get(days, 0) + 1
    outcome = scheduling.settle(step, days, moment.now, rules, None, rating)
    given = recording.Given(_LEVEL[rating], version=None)
    recording.record(session, learner_id, card, state, given, None, outcome, policy, moment, kind=recording.PLACEMENT)


def _touched(session: Session, learner_id: int) -> set[str]:
    """Cards that are not new, or that the learner does not want."""
    return {each.card_id for each in queries.list_standing(session, learner_id) if each.due_at or each.suspended_at}


def _new_cards(session: Session, learner_id: int, catalogue: Catalogue, deck_id: str) -> list[Card]:
    cards = [card for card in queries.all_cards(session, learner_id, catalogue).values() if card.deck.id == deck_id]
    if not cards:
        raise NotFound(f"There is no deck {deck_id!r}. Accepted: {', '.join(list(catalogue.decks)[:3])} and so on.")
    met = _touched(session, learner_id)
    return [card for card in cards if card.id not in met]
