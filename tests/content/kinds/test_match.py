"""Pairs that are matched by letter."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.content.asked import Asked
from app.content.catalogue import Catalogue
from tests.support.kinds import asked, must_be_refused

# What is changed to what, "line field" and a word of the reason: the loader refuses it.
REFUSED = [
    ("C14", "left: ZeRO-2", "left: ZeRO-1", "7 pairs", "the same left side"),
    ("C14", "right: everything", "right: optimizer", "7 pairs", "the same right side"),
    ("C14", "  - {left: ZeRO-3, right: everything}\n", "", "7 pairs", "at least 3 items"),
]


@pytest.mark.parametrize("broken", REFUSED)
def test_a_mistake_is_named_and_its_card_is_not_served(cards: Path, broken: tuple[str, ...]) -> None:
    must_be_refused(cards, *broken)


def right_letters(showing: Asked) -> list[str]:
    """The letters of a match card's right sides, in the order of the left ones."""
    by_text = {choice.text: choice.key for choice in showing.choices}
    return [by_text[pair.right] for pair in showing.card.asks]  # type: ignore[attr-defined]


@pytest.mark.parametrize("seed", range(8))
def test_pairs_are_matched_by_letter_and_never_lie_in_order(kinds: Catalogue, seed: int) -> None:
    showing = asked(kinds, "C14", seed)
    right = right_letters(showing)
    assert right != ["a", "b", "c"]
    assert showing.check(",".join(right)).status == "correct"
    turned = [right[1], right[0], right[2]]
    found = showing.check(",".join(turned))
    assert (found.status, found.message) == ("wrong", "2 of 3 belong elsewhere.")
    assert [about for about, _ in found.remarks] == ["ZeRO-1", "ZeRO-2"]
    assert found.remarks[0][1] == "goes with optimizer."
    assert found.given[0] == "optimizer, gradients"


@pytest.mark.parametrize(
    ("answer", "says"),
    [("a,b", "2 of 3 have one"), ("a,a,b", "a is chosen twice"), ("a,b,z", "'z' is not offered"), ("", "0 of 3")],
)
def test_an_incomplete_match_is_invalid(kinds: Catalogue, answer: str, says: str) -> None:
    found = asked(kinds, "C14").check(answer)
    assert found.status == "invalid"
    assert says in found.message.unescape()
