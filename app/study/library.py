"""Every card a learner can study: the catalogue's, and their own. Study reads cards here only."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain, zip_longest

from sqlalchemy.orm import Session

from app.content.cards import Card
from app.content.catalogue import Catalogue
from app.core.errors import NotFound
from app.decks.shelf import find_own_card, own_cards


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
