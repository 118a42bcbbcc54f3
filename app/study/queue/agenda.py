"""A learner's day: which card comes next, and how much is left, of all cards or of those a filter takes.

The study page, Today and the badge all ask here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import chain, islice
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from sqlalchemy.orm import Session

from app.content.cards import Card
from app.core.days import study_day
from app.core.errors import DomainError, Violation
from app.core.moment import Moment
from app.study import queries
from app.study.fsrs.scheduling import LEECH_LAPSES
from app.study.policy import Policy
from app.study.queue import queues
from app.study.queue.queues import Scheduled

if TYPE_CHECKING:  # loading it loads every kind of content, which an import does without
    from app.content.catalogue import Catalogue

Chosen = tuple[Collection[str], Collection[str]]
LEARN_AHEAD = timedelta(minutes=20)  # when nothing else is left, a card in its learning steps need not be waited for


# What can be studied by, and what can be listed by.
STATES = {
    "": "any state",
    "new": "new",
    "learning": "in first steps",
    "due": "due",
    "hard": "often forgotten",
    "flagged": "flagged",
}
LISTED_STATES = {**STATES, "known": "known", "suspended": "suspended", "buried": "buried", "noted": "with a note"}


@dataclass(frozen=True)
class Filter:
    """A choice of cards; an empty field chooses all. `page` is one of the handbook, `on_page` the cards it teaches."""

    deck: str = ""
    concept: str = ""
    state: str = ""
    page: str = ""
    on_page: frozenset[str] = field(default=frozenset(), repr=False)

    def __bool__(self) -> bool:
        return bool(self.fields)

    def takes(self, card: Card) -> bool:
        """Whether the card is of the deck, the concept and the page; the state is the learner's, not the card's."""
        return (
            (not self.deck or card.deck.id == self.deck)
            and (not self.concept or self.concept in card.head.concepts)
            and (not self.page or card.id in self.on_page)
        )

    @property
    def query(self) -> str:
        """As the part of an address after `?`."""
        return urlencode(self.fields)

    @property
    def fields(self) -> dict[str, str]:
        given = {"deck": self.deck, "concept": self.concept, "state": self.state, "page": self.page}
        return {name: value for name, value in given.items() if value}


NOTHING = Filter()


def checked_filter(
    catalogue: Catalogue, deck: str, concept: str, state: str, page: str = "", states: dict[str, str] = STATES
) -> Filter:
    """The filter of these names. Raises DomainError naming what there is no card of."""
    wrong = []
    # own decks are known by nobody but their cards: only the shape of the catalogue's own ids is checked
    if deck and deck not in catalogue.decks and deck[:2] == "DK" and deck[2:].isdigit():
        wrong.append(Violation("deck", deck, "There is no such deck.", ", ".join(catalogue.decks)))
    if concept and concept not in catalogue.concepts:
        wrong.append(Violation("concept", concept, "There is no such concept.", ", ".join(catalogue.concepts)))
    if page and page not in catalogue.pages:
        wrong.append(Violation("page", page, "There is no such page in the handbook.", "one of those at /reference"))
    if state not in states:
        wrong.append(Violation("state", state, "There is no such state.", ", ".join(filter(None, states))))
    if wrong:
        raise DomainError("There are no cards like that.", wrong)
    on_page = frozenset(card.id for card in catalogue.cards_of(page)) if page else frozenset[str]()
    return Filter(deck, concept, state, page, on_page)


@dataclass(frozen=True)
class Agenda:
    """Today: which card is first, what was done, and how much is left of what.

    `buried` cards are due but wait for tomorrow, because a card of their cluster was answered today. `new` is what is
    left of today's share of new cards, `new_waiting` as well what is beyond it where nothing else is left.
    """

    first: str | None
    done: int
    learning: int
    due: int
    new: int
    buried: int
    new_waiting: int

    @property
    def left(self) -> int:
        return self.learning + self.due + self.new


def agenda(
    session: Session,
    learner_id: int,
    catalogue: Catalogue,
    policy: Policy,
    moment: Moment,
    extra_new: int = 0,
    wanted: Filter = NOTHING,
    chosen: Chosen | None = None,
) -> Agenda:
    """The learner's day. `extra_new` cards are introduced beyond today's share; `wanted` narrows what is shown.

    `chosen` are the cards brought to this day and those held from it, where a plan says so but nothing wrote it down.
    """
    now, cards = moment.now, queries.all_cards(session, learner_id, catalogue)
    day = queues.read_day(session, learner_id, *study_day(moment))

    def is_near(card: Card) -> bool:
        return card.head.cluster in day.clusters

    takes = _takes(cards, wanted)
    learning = _scheduled(session, learner_id, now, now + LEARN_AHEAD, "learning", wanted, takes)
    if chosen is None:
        known = _scheduled(session, learner_id, now, now, "due", wanted, takes)
    else:
        released = queues.list_chosen(session, learner_id, now, *chosen) if _may(wanted, "due") else []
        known = [row for row in released if takes(row.card_id, row)]
    due = [row.card_id for row in known if not is_near(cards[row.card_id])]
    reviews_left = len(due) if policy.reviews_per_day is None else max(0, policy.reviews_per_day - day.repeated)
    unmet = _fresh(session, learner_id, catalogue, cards, policy, now) if _may(wanted, "new") else iter(())
    fresh = (card_id for card_id in unmet if not is_near(cards[card_id]) and takes(card_id, None))
    new = list(islice(fresh, max(0, policy.new_per_day + extra_new - day.introduced)))
    offered = chain(
        [row.card_id for row in learning[:1] if row.is_ready],
        due[: min(1, reviews_left)],
        new[:1],
        [row.card_id for row in learning[:1]],
    )
    first = next(offered, None)
    return Agenda(
        first,
        day.done,
        len(learning),
        min(len(due), reviews_left),
        len(new),
        len(known) - len(due),
        len(new) + (sum(1 for _ in fresh) if first is None else 0),
    )


def next_due_at(session: Session, learner_id: int, now: datetime) -> datetime | None:
    """When the next card returns."""
    return queues.find_next_due(session, learner_id, now)


Takes = Callable[[str, Scheduled | None], bool]


def _may(wanted: Filter, kind: str) -> bool:
    """Whether cards of this kind can be in the filter at all."""
    kinds = {"learning": ("", "learning", "due", "hard", "flagged"), "due": ("", "due", "hard", "flagged")}
    return wanted.state in {**kinds, "new": ("", "new")}[kind]


def _takes(cards: Mapping[str, Card], wanted: Filter) -> Takes:
    """Whether a card is in the library as it was learned, and in the filter."""

    def takes(card_id: str, row: Scheduled | None) -> bool:
        card = cards.get(card_id)
        if card is None or (row is not None and row.revision != card.head.revision):
            return False
        if wanted.state == "hard" and (row is None or row.lapses < LEECH_LAPSES):
            return False
        if wanted.state == "flagged" and (row is None or not row.is_flagged):
            return False
        return wanted.takes(card)

    return takes


def _scheduled(
    session: Session, learner_id: int, now: datetime, until: datetime, kind: str, wanted: Filter, takes: Takes
) -> list[Scheduled]:
    """Cards in their learning steps, or known ones, that come back by `until`, the soonest first."""
    if not _may(wanted, kind):
        return []
    found = queues.list_scheduled(session, learner_id, kind == "learning", now, until)
    return [row for row in found if takes(row.card_id, row)]


def _fresh(
    session: Session,
    learner_id: int,
    catalogue: Catalogue,
    cards: Mapping[str, Card],
    policy: Policy,
    now: datetime,
) -> Iterator[str]:
    """New cards in the order of introduction: never met, or met when they meant something else; none that is away.

    Nothing is read before the first one is asked for: once today's share is used up none is.
    """
    unmet = queues.list_unmet(session, learner_id, catalogue, cards)
    revised = [card_id for card_id in queries.list_revised(catalogue, cards) if card_id not in unmet]
    rows = queues.list_without_memory(session, learner_id) + queries.list_standing_of(session, learner_id, revised)
    unmet.update(row.card_id for row in rows if row.card_id in cards and _is_new(row, cards[row.card_id], now))
    first = dict.fromkeys(filter(unmet.__contains__, policy.order or ()))
    yield from first
    yield from filter(unmet.difference(first).__contains__, cards)


def _is_new(row: queries.Standing, card: Card, now: datetime) -> bool:
    is_away = row.suspended_at is not None or (row.buried_until is not None and row.buried_until > now)
    return not is_away and (row.due_at is None or row.revision != card.head.revision)
