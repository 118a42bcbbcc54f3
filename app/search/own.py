"""A learner's own cards among the results of a search. They are looked up in the database, not in the index."""

from __future__ import annotations

from dataclasses import replace

from sqlalchemy.orm import Session

from app.content.cards import Card
from app.content.plain_math import plain_math
from app.decks.shelf import search_own_cards
from app.search.documents import without_marks
from app.search.index import Document, words
from app.search.service import Group, Hit, Results
from app.search.snippets import highlight, snippet


def with_own_cards(session: Session, learner_id: int, results: Results, limit: int) -> Results:
    """`results` with the own cards that hold every word: first where a title does, else last."""
    matched = frozenset(words(results.query))
    if not matched:
        return results
    cards, count = search_own_cards(session, learner_id, results.query, limit)
    if not cards:
        return results
    hits = [_hit(card, matched) for card in cards]
    group = Group("own", "Your cards", hits, count)
    is_named = any(matched <= set(words(hit.document.title)) for hit in hits)
    return replace(results, groups=[group, *results.groups] if is_named else [*results.groups, group])


def _hit(card: Card, matched: frozenset[str]) -> Hit:
    text = " ".join(without_marks(plain_math(section)) for section in card.source.sections.values())
    document = Document("own", card.id, card.head.title, f"/study/cards/{card.id}", "your card", body=text)
    return Hit(document, highlight(card.head.title, matched), snippet(text, matched))
