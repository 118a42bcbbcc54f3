"""A program whose output is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.content.cards import fenced
from app.content.catalogue import Catalogue
from tests.support.kinds import must_be_noticed

# What only the checks see.
CHECKED = [
    ("C17", "```python run", "```python", "9 # Question", "one block ```python run"),
    ("C17", "```text output", "```text", "19 # Answer", "begins with a block ```text output"),
]


@pytest.mark.parametrize("broken", CHECKED)
def test_the_checks_name_file_line_and_field(cards: Path, broken: tuple[str, ...]) -> None:
    must_be_noticed(cards, *broken)


def test_a_program_keeps_its_braces_dollars_and_brackets(kinds: Catalogue) -> None:
    card = kinds.cards["C17"]
    (program,) = fenced(card.source.sections["Question"], "python run")
    assert program.splitlines()[1] == 'cost = "$5 and $6"'
    html = card.sections["Question"]
    assert 'class="language-python"' in html
    assert '<pre tabindex="0">' in html, "a wide program scrolls, and the keyboard must reach it"
    assert "{{ 7 }}" in html
    assert "[[1]]" in html
    assert "$5 and $6" in html
    assert "1 {{ 7 }} [[1]]\n</code>" in card.sections["Answer"]
