"""Blanks in a sentence, which the learner fills and judges."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.content.catalogue import Catalogue
from tests.support.kinds import must_be_noticed, must_be_refused

# What is changed to what, "line field" and a word of the reason: the loader refuses it.
REFUSED = [
    ("C16", "training_state(", "training_stat(", "9 # Question", "'training_stat' is undefined"),
    ("C16", "kind: cloze", "kind: cloze\nseconds: 1", "5 seconds", "greater than or equal to 5"),
    (
        "C16",
        "kind: cloze",
        "kind: cloze\ndiagram: {kind: ring, title: T, finding: F, ranks: 2, phase: all-gather, step: 0}",
        "5 diagram.ring.ranks",
        "greater than or equal to 3",
    ),
    (
        "C16",
        "kind: cloze",
        "kind: cloze\ndiagram: {kind: tree, title: T, finding: F, ranks: 4}\n"
        "figure: {title: T, finding: F, rows: [{label: L}]}",
        "2 file",
        "not both",
    ),
]
# What only the checks see.
CHECKED = [
    ("C16", "[[$16$]]", "[[$16$]] [[a]] [[b]]", "9 # Question", "here are 4"),
]


@pytest.mark.parametrize("broken", REFUSED)
def test_a_mistake_is_named_and_its_card_is_not_served(cards: Path, broken: tuple[str, ...]) -> None:
    must_be_refused(cards, *broken)


@pytest.mark.parametrize("broken", CHECKED)
def test_the_checks_name_file_line_and_field(cards: Path, broken: tuple[str, ...]) -> None:
    must_be_noticed(cards, *broken)


def test_a_blank_holds_its_gap_and_its_text(kinds: Catalogue) -> None:
    html = kinds.cards["C16"].sections["Question"]
    assert html.count('<span class="gap">') == 2
    first, second = html.split('<span class="fill">')[1:]
    assert first.startswith('<a class="live"')
    assert "112 GB</a></span></span>" in first
    assert second.startswith("<math")
