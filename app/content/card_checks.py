"""What must hold of cards beyond their schema: kinds complete, numbers right at every seed, texts short."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from app.content.bare_numbers import bare_numbers
from app.content.cards import Card
from app.content.kinds.kind import CardFinding, CheckedKind

if TYPE_CHECKING:
    from app.content.catalogue import Catalogue

LINTED = ("Answer", "Shorthand", "Precise", "Trap")

_EXPRESSION = re.compile(r"\{\{.*?\}\}", re.DOTALL)
_FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)

Location = tuple[str | int, ...]


def check_cards(catalogue: Catalogue) -> Iterator[tuple[str, Location, str]]:
    """Every card; each finding with the field or section it concerns."""
    for card in catalogue.cards.values():
        for check in (_kind_findings, _length_findings):
            yield from ((card.id, *finding) for finding in check(card))
        yield from ((card.id, *finding) for finding in _bare_findings(card, catalogue.given))


def _kind_findings(card: Card) -> Iterator[CardFinding]:
    """A card has what its kind asks, and the kind finds nothing wrong with it."""
    if isinstance(card.kind, CheckedKind) and not card.kind.asked_of(card.head):
        yield ("kind",), f"a card of kind {card.kind.name} needs {card.kind.field.name}"
    yield from card.kind.findings(card)


def _length_findings(card: Card) -> Iterator[CardFinding]:
    """A card is read in less than a minute. A program is not counted, an expression is one word."""
    limits = {"Question": card.kind.question_words, "Answer": card.kind.answer_words}
    for name, most in limits.items():
        words = count_words(card.source.sections[name])
        if words > most:
            yield (f"# {name}",), f"{words} words are too many for a {card.kind.name} card; at most {most}"


def count_words(text: str) -> int:
    """Words of a section as they are read."""
    return len(_EXPRESSION.sub("x", _FENCED.sub("", text)).split())


def _bare_findings(card: Card, given: Iterable[str]) -> Iterator[CardFinding]:
    """A number that follows from others is computed; one that is given stands in the question or has a source."""
    asked = card.kind.texts(card.head) if isinstance(card.kind, CheckedKind) else ()
    known = [card.source.sections["Question"], *given, *card.head.given, *asked]
    for name in LINTED:
        for figure in bare_numbers(card.source.sections.get(name, ""), known):
            yield (f"# {name}",), f"{figure!r} is typed: compute it, or list it under given: with its source"
