"""A number drawn by seed, its key, its slips, and what becomes of an answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.content.catalogue import Catalogue
from tests.support.kinds import asked, must_be_noticed, must_be_refused

# What is changed to what, "line field" and a word of the reason: the loader refuses it.
REFUSED = [
    ("C11", "unit: GB", "unit: GBs", "13 ask.unit", "no unit known here"),
    ("C11", "  unit: GB\n", "", "7 ask.unit", "Field required"),
    ("C11", "ranks: [2, 4, 8]", "ranks: [2]", "7 ask", "4 combinations, 8 are needed"),
    ("C11", "[1, 2, 4, 8]", "[1, 1, 1, 1]", "7 ask", "3 combinations"),
    ("C11", "[1, 2, 4, 8]", "[]", "8 ask.parameters.billions", "at least 1 item"),
    ("C11", "unit: GB", "unit: GB\n  tolerance: 2", "14 ask.tolerance", "less than or equal to 0.5"),
    ("C11", "unit: GB", "unit: GB\n  colour: red", "14 ask.colour", "Extra inputs"),
    ("C11", "key: zero_state(", "key: zero_stat(", "12 ask.key", "'zero_stat' is undefined"),
    ("C11", "over {{ ranks }} ranks: bytes", "over {{ rank }} ranks: bytes", "11 ask.prompt", "rank"),
    ("C11", "value: 16 * whole,", "value: 16 * hole,", "15 ask.slips.0.value", "hole"),
    ("C11", "whole: billions * 1e9", "whole: billion * 1e9", "10 ask.let.whole", "'billion' is undefined"),
    ("C11", "ranks > 2", "ranks > 2000", "9 ask.where", "no combination"),
    ("C11", "cure: C01", "cure: card", "15 ask.slips.0.cure", "match pattern"),
]
# What only the checks see.
CHECKED = [
    ("C11", "ranks=ranks, stage=3)", "ranks=ranks, stage=3) - 1e12", "7 ask", "needs a positive one"),
    ("C11", "value: 16 * whole,", "value: 16 * whole / ranks,", "15 ask.slips.0", "never differs from the key"),
    ("C11", "ranks > 2", "ranks > 15", "7 ask", "200 seeds draw 6 combinations"),
    ("C11", 'prompt: "{{ billions }}B', 'prompt: "{{ (1 / (billions - 8)) | number }}B', "11 ask.prompt", "division"),
]


@pytest.mark.parametrize("broken", REFUSED)
def test_a_mistake_is_named_and_its_card_is_not_served(cards: Path, broken: tuple[str, ...]) -> None:
    must_be_refused(cards, *broken)


@pytest.mark.parametrize("broken", CHECKED)
def test_the_checks_name_file_line_and_field(cards: Path, broken: tuple[str, ...]) -> None:
    must_be_noticed(cards, *broken)


def numbers(kinds: Catalogue, seed: int) -> tuple[float, float]:
    """Billions and ranks of the numeric card at `seed`, read from what it shows."""
    billions, _, rest = asked(kinds, "C11", seed).prompt.striptags().partition("B over ")
    return float(billions), float(rest.split()[0])


def test_a_numeric_card_asks_other_numbers_at_other_seeds_and_the_same_at_the_same(kinds: Catalogue) -> None:
    assert len({numbers(kinds, seed) for seed in range(60)}) == 11, (
        "4 × 3 combinations but 1 over 2, which where excludes"
    )
    assert numbers(kinds, 7) == numbers(kinds, 7)


@pytest.mark.parametrize("seed", range(5))
def test_the_key_follows_the_drawn_numbers(kinds: Catalogue, seed: int) -> None:
    billions, ranks = numbers(kinds, seed)
    showing = asked(kinds, "C11", seed)
    assert showing.number is not None
    assert showing.number.key == pytest.approx(16 * billions * 1e9 / ranks)  # ZeRO-3 divides all sixteen bytes
    assert showing.check(f"{16 * billions / ranks} GB").status == "correct"
    assert showing.check(f"{16 * billions / ranks * 1.015} GB").status == "correct", "within 2 %"
    assert showing.check(f"{16 * billions / ranks * 1.03} GB").status == "wrong"


def test_a_known_slip_is_told_with_its_message_and_cure(kinds: Catalogue) -> None:
    billions, _ = numbers(kinds, 3)
    found = asked(kinds, "C11", 3).check(f"{16 * billions} GB")
    assert (found.status, found.title, found.cure) == ("wrong", "not divided", "C01")
    assert found.message == f"All {16 * billions:g} GB of it."


@pytest.mark.parametrize("text", ["", "many", "12 s", "12", "<b>12</b>"])
def test_what_cannot_be_read_is_invalid_and_escaped(kinds: Catalogue, text: str) -> None:
    found = asked(kinds, "C11").check(text)
    assert found.status == "invalid"
    assert found.message
    assert "<b>" not in found.message
