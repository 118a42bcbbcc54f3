"""Every card a learner can study: the catalogue's, and their own. Study reads cards here only."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from itertools import chain, zip_longest
from types import MappingProxyType

from sqlalchemy.orm import Session

from app.content.cards import Card
from app.content.catalogue import Catalogue
from app.core.errors import NotFound
from app.decks.shelf import find_own_card, own_cards, shelf_state

MOST_KEPT = 256

Cards = Mapping[str, Card]
_together: dict[int, tuple[Cards, Cards, Cards]] = {}  # by learner: the two they were made of, and both in turn


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
    kept = _together.get(learner_id)
    if kept is None or kept[0] is not catalogue.cards or kept[1] is not own:
        turns = chain.from_iterable(zip_longest(catalogue.cards.items(), own.items()))
        kept = catalogue.cards, own, MappingProxyType({pair[0]: pair[1] for pair in turns if pair})
        if len(_together) >= MOST_KEPT:
            _together.clear()
        _together[learner_id] = kept
    return kept[2]


def edition(session: Session, learner_id: int, catalogue: Catalogue) -> Hashable:
    """What changes whenever `all_cards` would return something else. Asked at every review, so it must be cheap."""
    return id(catalogue), shelf_state(session, learner_id)
