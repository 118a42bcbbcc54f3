"""A learner's own cards for the study room: held in the process, read anew only where something changed."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any
from weakref import WeakKeyDictionary

from sqlalchemy.orm import Session

from app.content.cards import Card
from app.decks import queries
from app.decks.cards import make_own_card


@dataclass(frozen=True)
class _Held:
    """What a process holds of a learner: the cards at a state of the shelf, and what each was made from."""

    state: str = ""
    stamps: Mapping[str, queries.Stamp] = field(default_factory=dict)
    cards: Mapping[str, Card] = field(default_factory=dict)


_HELD: WeakKeyDictionary[Any, dict[int, _Held]] = WeakKeyDictionary()  # by database, then by learner


def own_cards(session: Session, learner_id: int) -> Mapping[str, Card]:
    """The learner's own cards by id, in the order they were made."""
    state = shelf_state(session, learner_id)
    if not state:
        return {}
    by_learner = _HELD.setdefault(session.get_bind().engine, {})
    held = by_learner.get(learner_id, _Held())
    if held.state != state:
        held = by_learner[learner_id] = _renewed(session, learner_id, state, held)
    return held.cards


def find_own_card(session: Session, learner_id: int, card_id: str) -> Card | None:
    """One own card."""
    return own_cards(session, learner_id).get(card_id)


def search_own_cards(session: Session, learner_id: int, text: str, limit: int) -> tuple[list[Card], int]:
    """At most `limit` own cards that hold every word of `text`, the newest first, and how many there are."""
    rows, count = queries.search_own(session, learner_id, queries.Filter(text), limit)
    cards = own_cards(session, learner_id) if rows else {}
    return [cards[row.card_id] for row in rows if row.card_id in cards], count


def shelf_state(session: Session, learner_id: int) -> str:
    """What changes whenever `own_cards` would return something else, empty without any: one row, read by its key."""
    return queries.find_shelf_state(session, learner_id) or ""


def touch(session: Session, learner_id: int) -> None:
    """Say that an own card changed, in the transaction that changed it."""
    queries.put_shelf_state(session, learner_id, secrets.token_hex(8))


def _renewed(session: Session, learner_id: int, state: str, held: _Held) -> _Held:
    stamps = dict(queries.list_versions(session, learner_id))
    changed = [card_id for card_id, stamp in stamps.items() if held.stamps.get(card_id) != stamp]
    rows = queries.list_own(session, learner_id, changed)
    made = {row.card_id: make_own_card(queries.stored_of(row)) for row in rows}
    cards = {card_id: made.get(card_id) or held.cards[card_id] for card_id in stamps}
    return _Held(state, stamps, MappingProxyType(cards))
