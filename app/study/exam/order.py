"""Which new cards first when there is a date, and which to leave out when not all fit. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from app.content.cards import Card
from app.content.schemas import Concept


def introduction_order(cards: Mapping[str, Card], decks: Sequence[str]) -> list[str]:
    """Every card by its deck's place in `decks`, within a deck as the library has it; the learner's own decks last."""
    place = {deck: index for index, deck in enumerate(decks)}
    return sorted(cards, key=lambda card_id: place.get(cards[card_id].deck.id, len(decks)))


def left_out_last(
    order: Iterable[str], cards: Mapping[str, Card], concepts: Mapping[str, Concept], fits: int
) -> list[str]:
    """The same order, but what does not fit at its end: cards whose concepts fewest others rest on."""
    before = list(order)
    weight = {concept_id: len(found) for concept_id, found in _resting_on(concepts).items()}
    ranked = sorted(
        before, key=lambda card_id: -max((weight.get(each, 0) for each in cards[card_id].head.concepts), default=0)
    )
    kept = set(ranked[:fits])
    return [each for each in before if each in kept] + [each for each in before if each not in kept]


def _resting_on(concepts: Mapping[str, Concept]) -> dict[str, set[str]]:
    """For each concept, those that need it, directly or through others."""
    found: dict[str, set[str]] = {each: set() for each in concepts}
    for each in concepts:
        open_, seen = [each], {each}
        while open_:
            for need in concepts[open_.pop()].needs:
                if need in concepts and need not in seen:
                    seen.add(need)
                    open_.append(need)
                    found[need].add(each)
    return found
