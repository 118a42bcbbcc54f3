"""A question and an answer, which the learner judges."""

from __future__ import annotations

from pathlib import Path

from app.content.catalogue import Catalogue
from tests.support.cards import edit
from tests.support.kinds import must_be_noticed


def test_the_learner_judges_it(kinds: Catalogue) -> None:
    card = kinds.cards["C01"]
    assert (card.kind.name, card.is_checked) == ("basic", False)
    assert card.kind.own is not None
    assert card.kind.own.needs_answer


def test_its_question_is_read_at_a_glance(cards: Path) -> None:
    (cards / "decks/first/C01.md").rename(cards / "decks/kinds/C01.md")
    edit(cards, "decks/kinds/C01.md", "  problems: [P01]", "  cards: [C02]")
    must_be_noticed(cards, "C01", "How much", "word " * 90, "11 # Question", "too many for a basic card; at most 90")
