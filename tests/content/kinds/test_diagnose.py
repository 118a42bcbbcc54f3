"""A symptom of a running job, which the learner explains and judges."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.content.catalogue import load
from tests.support.cards import edit
from tests.support.kinds import must_be_noticed


@pytest.fixture
def symptom(cards: Path) -> Path:
    """The folder with the card of blanks as one of a symptom."""
    edit(cards, "decks/kinds/C16.md", "kind: cloze", "kind: diagnose")
    return cards


def test_the_learner_judges_it_and_may_take_longer_than_over_a_fact(symptom: Path) -> None:
    cards = load(symptom).cards
    assert (cards["C16"].kind.name, cards["C16"].is_checked, cards["C16"].kind.own) == ("diagnose", False, None)
    assert cards["C16"].expected_seconds > cards["C01"].expected_seconds


def test_its_question_is_read_at_a_glance(symptom: Path) -> None:
    must_be_noticed(
        symptom, "C16", "[[$16$]]", "word " * 91, "9 # Question", "too many for a diagnose card; at most 90"
    )
