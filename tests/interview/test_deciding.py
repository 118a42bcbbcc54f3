"""The level of a sitting: its points give it, and what was not shown holds it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.grading.levels import STRONG_RATED, UNAIDED
from app.interview.criteria import criteria
from app.interview.deciding import decide
from app.interview.rows import JudgedPoint, Row
from tests.support.sat import right_sitting
from tests.support.shipped import shipped


def _text(name: str, criterion: str, credit: float = 1.0, said: str = "It is 16 bytes.") -> Row:
    point = JudgedPoint(name, "A point.", 1, None, "met" if credit else "missed", credit, (said,), criterion=criterion)
    return Row(name, name, "text", said, 10.0, "1 of 1", 10.0 * credit, rubric=(point,))


NUMBER = Row("n", "N", "number", "3 GB", 20.0, "right", 20.0)
WHOLE = (NUMBER, _text("a", "depth"), _text("b", "trade-offs"), _text("c", "structure"))


def test_points_alone_are_a_strong_hire_where_all_of_it_was_shown() -> None:
    assert decide(WHOLE, 1.0) == decide(WHOLE, 0.8)
    assert (decide(WHOLE, 1.0).level, decide(WHOLE, 1.0).held) == ("strong hire", ())


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ((NUMBER, replace(NUMBER, id="m")), "hardly anything here asks for depth, trade-offs, structure"),
        (
            (
                replace(NUMBER, hints=("look",)),
                *(_text(each.id, each.rubric[0].criterion, said="So.") for each in WHOLE[1:]),
            ),
            "no number",
        ),
        ((*WHOLE, Row("p", "P", "coding", "x", 10.0, "3 of 4 checks held", 7.5)), "1 program does not pass"),
        ((NUMBER, _text("a", "depth", 0.5), _text("b", "trade-offs", 0.5), WHOLE[3]), "depth and trade-offs are at"),
    ],
)
def test_what_was_not_shown_is_no_strong_hire(rows: tuple[Row, ...], why: str) -> None:
    found = decide(rows, 0.9)
    assert (found.level, found.by_points) == ("hire", "strong hire")
    assert why in " ".join(found.held)


@pytest.mark.parametrize("level", UNAIDED)
def test_what_comes_only_when_asked_about_holds_the_level(level: str) -> None:
    """A sitting that comes to 82 % with less than a level's share of it unaided is below that level."""
    gained = 82 - 100 * UNAIDED[level] + 1  # type: ignore[index]
    found = decide((Row("n", "N", "number", "3", 100.0, "corrected", 82.0, gained=gained),), 0.82)
    names = ["strong hire", "hire", "lean no hire", "no hire"]
    assert names.index(found.level) == names.index(level) + 1
    assert "without being asked about" in found.held[0]


def test_a_full_sitting_of_every_interview_in_words_can_be_a_strong_hire() -> None:
    for name, interview in shipped().interviews.items():
        if interview.is_round:
            continue
        card = right_sitting(interview, 3)
        rated = [each for each in criteria(card.rows) if each.level]
        assert len(rated) >= STRONG_RATED, name
        assert (card.level, card.decision.held) == ("strong hire", ()), name
