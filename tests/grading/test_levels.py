"""The same score is of the same level, whichever room asks, and whatever the order its points were added in."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.content.interview_schemas import Interview
from app.grading import levels
from app.grading.rubrics.grader import Rubric, grade
from app.grading.rubrics.patterns import parse
from app.grading.rubrics.points import Point
from app.interview import scoring
from app.progress.checkpoints import Done, _interview

EXPECTED = {"strong hire": 0.80, "hire": 0.60, "lean no hire": 0.35, "no hire": 0.0}


def test_the_table_is_the_one_that_was_agreed() -> None:
    assert {each.level: each.least for each in levels.THRESHOLDS} == EXPECTED
    assert list(EXPECTED) == list(levels.NAMES)
    assert [each.least_percent for each in levels.THRESHOLDS] == ["80 %", "60 %", "35 %", "0 %"]
    assert levels.least_percent("hire") == "60 %"


@pytest.mark.parametrize(
    ("score", "level"),
    [
        (0.7999999999999999, "strong hire"),  # eight times 0.1
        (sum([0.1] * 6), "hire"),
        (0.79994, "hire"),
        (0.79995, "strong hire"),  # it is stored and sent as 0.8
        (0.35 - 1e-12, "lean no hire"),
        (0.3499, "no hire"),
    ],
)
def test_a_score_has_the_level_of_what_is_shown(score: float, level: str) -> None:
    assert levels.level_of(score) == level
    assert levels.level_of(levels.rounded(score)) == level


@given(score=st.floats(0, 1))
def test_a_level_is_reached_where_its_percentage_is_shown(score: float) -> None:
    """No page says 80 % of somebody who is not a strong hire, nor 79 % of somebody who is."""
    for each in levels.THRESHOLDS:
        assert (levels.percent(score) >= round(100 * each.least)) == levels.reaches(score, each.level)


@pytest.mark.parametrize(
    ("score", "shown"), [(6 / 9, 67), (0.796, 79), (0.3451, 34), (0.697, 69), (0.997, 99), (1, 100), (0, 0)]
)
def test_a_percentage_is_the_nearest_that_promises_no_more(score: float, shown: int) -> None:
    assert levels.percent(score) == shown


@given(score=st.floats(0, 1), capped=st.booleans(), lifted=st.booleans())
def test_what_caps_and_lifts_moves_to_one_level(score: float, capped: bool, lifted: bool) -> None:
    plain, found = levels.level_of(score), levels.level_of(score, capped, lifted)
    better, worse = plain in ("strong hire", "hire"), plain == "no hire"
    assert found == ("lean no hire" if (better and capped) or (worse and lifted) else plain)


def _by_rubric(weights: list[int], met: list[bool]) -> tuple[str, float]:
    words = ("alpha", "bravo", "charlie", "delta", "golf", "hotel")
    points = tuple(Point(word, weight, (parse(word, None),)) for word, weight in zip(words, weights, strict=False))  # type: ignore[arg-type]
    said = " ".join(f"We use {word} here." for word, is_met in zip(words, met, strict=False) if is_met) or "Nothing."
    found = grade(Rubric(points, ()), said)
    return found.level, found.score


def _by_interview(weights: list[int], met: list[bool]) -> tuple[str, float]:
    questions: list[dict[str, Any]] = [
        {
            "id": f"q{index}",
            "kind": "choice",
            "title": "Q",
            "learn": "Know it",
            "prompt": "Which?",
            "minutes": 1,
            "points": weight,
            "explanation": "So.",
            "options": [
                {"id": "right", "text": "Right", "correct": True, "message": "Yes."},
                {"id": "wrong", "text": "Wrong", "message": "No.", "ask": "Is it?", "did": "erred"},
            ],
        }
        for index, weight in enumerate(weights)
    ]
    head = {"id": "M1", "slug": "s", "title": "S", "about": "S.", "concepts": ["memory"], "minutes": 9}
    interview = Interview.model_validate({**head, "parameters": {}, "questions": questions})
    answers = {f"q{index}": "right" if is_met else "wrong" for index, is_met in enumerate(met)}
    card = scoring.scorecard(interview, {}, answers, {})
    return str(card.decision.by_points), card.score


@given(points=st.lists(st.tuples(st.integers(1, 10), st.booleans()), min_size=1, max_size=6))
def test_the_same_points_give_the_same_level_in_rubrics_interviews_and_checkpoints(
    points: list[tuple[int, bool]],
) -> None:
    weights, met = [weight for weight, _ in points], [is_met for _, is_met in points]
    level, score = _by_rubric(weights, met)
    assert _by_interview(weights, met) == (level, score)
    assert (level in ("hire", "strong hire")) == _hired(score)


def _hired(score: float) -> bool:
    from app.content.catalogue import Catalogue

    head = {"id": "M1", "slug": "s", "title": "S", "about": "S.", "concepts": ["memory"], "minutes": 9}
    words = {
        "id": "w",
        "kind": "text",
        "title": "W",
        "prompt": "?",
        "minutes": 1,
        "points": 1,
        "explanation": "W",
        "exemplar": "W",
        "weak": "V",
        "cure": "C01",
        "rubric": [{"id": "w", "topic": "the word", "text": "W", "met": ["w"]}],
    }
    interview = Interview.model_validate({**head, "parameters": {}, "questions": [words]})
    return _interview(Catalogue(interviews={"M1": interview}), Done({}, (), {"M1": score}), "M1").is_met


def test_a_sum_of_tenths_reaches_what_it_adds_up_to() -> None:
    sums = list(accumulate([0.1] * 8))
    assert sums[-1] < 0.8, "the case that two rooms once judged differently"
    assert levels.level_of(sums[-1]) == levels.level_of(0.8) == "strong hire"
    assert levels.share(sums[-1], 1.0) == 0.8
    assert levels.share(0.0, 0.0) == 0.0
