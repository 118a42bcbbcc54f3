"""Which cards a learner wants to see: of a deck, of a concept, in a state. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlencode

from app.content.cards import Card
from app.content.catalogue import Catalogue
from app.core.errors import DomainError, Violation

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
    """A choice of cards; an empty field chooses all."""

    deck: str = ""
    concept: str = ""
    state: str = ""

    def __bool__(self) -> bool:
        return bool(self.deck or self.concept or self.state)

    def takes(self, card: Card) -> bool:
        """Whether the card is of the deck and the concept; the state is the learner's, not the card's."""
        return (not self.deck or card.deck.id == self.deck) and (not self.concept or self.concept in card.head.concepts)

    @property
    def query(self) -> str:
        """As the part of an address after `?`."""
        return urlencode({name: value for name, value in vars(self).items() if value})

    @property
    def fields(self) -> dict[str, str]:
        return {name: value for name, value in vars(self).items() if value}


NOTHING = Filter()


def checked_filter(
    catalogue: Catalogue, deck: str, concept: str, state: str, states: dict[str, str] = STATES
) -> Filter:
    """The filter of these names. Raises DomainError naming what there is no card of."""
    wrong = []
    # own decks are known by nobody but their cards: only the shape of the catalogue's own ids is checked
    if deck and deck not in catalogue.decks and deck[:2] == "DK" and deck[2:].isdigit():
        wrong.append(Violation("deck", deck, "There is no such deck.", ", ".join(catalogue.decks)))
    if concept and concept not in catalogue.concepts:
        wrong.append(Violation("concept", concept, "There is no such concept.", ", ".join(catalogue.concepts)))
    if state not in states:
        wrong.append(Violation("state", state, "There is no such state.", ", ".join(filter(None, states))))
    if wrong:
        raise DomainError("There are no cards like that.", wrong)
    return Filter(deck, concept, state)
