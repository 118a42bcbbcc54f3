"""Steps that are put in order."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.content.catalogue import Catalogue
from tests.support.kinds import asked, must_be_noticed, must_be_refused

# What is changed to what, "line field" and a word of the reason: the loader refuses it.
REFUSED = [
    ("C15", "steps: [gather, compute, gather, scatter]", "steps: [gather, compute]", "7 steps", "at least 3 items"),
    ("C15", "scatter]", "'$\\frac$']", "7 steps.3", "frac"),
]
# What only the checks see.
CHECKED = [
    ("C15", "steps: [gather, compute, gather, scatter]\n", "", "4 kind", "a card of kind order needs steps"),
]


@pytest.mark.parametrize("broken", REFUSED)
def test_a_mistake_is_named_and_its_card_is_not_served(cards: Path, broken: tuple[str, ...]) -> None:
    must_be_refused(cards, *broken)


@pytest.mark.parametrize("broken", CHECKED)
def test_the_checks_name_file_line_and_field(cards: Path, broken: tuple[str, ...]) -> None:
    must_be_noticed(cards, *broken)


@pytest.mark.parametrize("seed", range(8))
def test_steps_are_put_in_order_and_equal_ones_may_change_places(kinds: Catalogue, seed: int) -> None:
    showing = asked(kinds, "C15", seed)
    letters: dict[str, list[str]] = {}
    for choice in showing.choices:
        letters.setdefault(str(choice.text), []).append(choice.key)
    first, second = letters["gather"]
    (compute,), (scatter,) = letters["compute"], letters["scatter"]
    assert [choice.text for choice in showing.choices] != ["gather", "compute", "gather", "scatter"]
    assert showing.check(f"{first},{compute},{second},{scatter}").status == "correct"
    assert showing.check(f"{second},{compute},{first},{scatter}").status == "correct"
    found = showing.check(f"{compute},{first},{second},{scatter}")
    assert (found.status, found.message) == (
        "wrong",
        "Two of 4 steps are in their place; 5 of 6 pairs stand the right way round.",
    )
    assert "<li>gather</li><li>compute</li><li>gather</li><li>scatter</li>" in found.right
