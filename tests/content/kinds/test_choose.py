"""One option, or all that are right."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.content.catalogue import Catalogue
from tests.support.kinds import asked, must_be_noticed, must_be_refused

# What is changed to what, "line field" and a word of the reason: the loader refuses it.
REFUSED = [
    ("C12", "message: One link carries everything.", "correct: false", "9 options.1", "a message that says why"),
    ("C12", ", correct: true, message: All", ", message: All", "7 options", "one of them must be correct"),
    ("C12", "id: star", "id: ring", "7 options", "the same id"),
    ("C12", "text: A tree", "text: '{{ tree }}'", "10 options.2.text", "tree"),
    ("C12", "kind: choose", "kind: basic", "2 file", "options belongs to a choose card"),
]
# What only the checks see.
CHECKED = [
    ("C12", "The ring.", "The ring, 3 times.", "17 # Answer", "'3 times' is typed"),
    ("C12", "The ring.", "word " * 141, "17 # Answer", "141 words are too many for a choose card; at most 140"),
    ("C12", "Which topology", "word " * 90, "13 # Question", "at most 90"),
]


@pytest.mark.parametrize("broken", REFUSED)
def test_a_mistake_is_named_and_its_card_is_not_served(cards: Path, broken: tuple[str, ...]) -> None:
    must_be_refused(cards, *broken)


@pytest.mark.parametrize("broken", CHECKED)
def test_the_checks_name_file_line_and_field(cards: Path, broken: tuple[str, ...]) -> None:
    must_be_noticed(cards, *broken)


@pytest.mark.parametrize(
    ("answer", "status", "says"),
    [
        ("ring", "correct", "All links carry the same."),
        (" ring ", "correct", "All links carry the same."),
        ("star", "wrong", "One link carries everything."),
        ("", "invalid", "Choose one of"),
        ("moon", "invalid", "Choose one of"),
        ("ring,star", "invalid", "Choose one of"),
    ],
)
def test_one_option_is_chosen(kinds: Catalogue, answer: str, status: str, says: str) -> None:
    found = asked(kinds, "C12").check(answer)
    assert found.status == status
    assert says in found.message


@pytest.mark.parametrize(
    ("answer", "status", "says"),
    [
        ("weights,moments", "correct", "Adam keeps two."),
        ("moments, weights", "correct", "Adam keeps two."),
        ("weights", "wrong", "You left out 1 that is right."),
        ("logits", "wrong", "You chose 1 that is wrong and left out 2 that are right."),
        ("weights,moments,logits", "wrong", "You chose 1 that is wrong."),
        ("", "invalid", "Choose one or more of"),
    ],
)
def test_all_right_options_are_chosen(kinds: Catalogue, answer: str, status: str, says: str) -> None:
    showing = asked(kinds, "C13")
    assert showing.several
    found = showing.check(answer)
    assert (found.status, found.message) == (status, says) or (status == "invalid" and says in found.message)


def test_options_change_places_unless_the_question_names_them(kinds: Catalogue) -> None:
    orders = {tuple(choice.key for choice in asked(kinds, "C12", seed).choices) for seed in range(30)}
    assert len(orders) == 6, "three options have six orders"
    assert {tuple(choice.key for choice in asked(kinds, "C13", seed).choices) for seed in range(30)} == {
        ("weights", "moments", "logits")
    }
