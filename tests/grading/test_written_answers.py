"""Answers to the long problems and production challenges, in many voices, grade close to their labels."""

from __future__ import annotations

from collections import Counter

import pytest

from app.content.catalogue import catalogue
from app.grading.levels import NAMES, level_of
from app.grading.rubrics.grader import RubricGrade
from tests.support.agreement import NEVER_GOOD, agreement
from tests.support.written import Answer, graded, labelled, written

RUBRICS = [f"{letters}{number}" for letters in ("SP", "PC") for number in range(1, 6)]
FIELDS = {"id", "voice", "text", "level"}
LABELS = {"met", "half", "against", "critical", "floor"}
ANSWERS = [(identity, answer) for identity, answers in written().items() for answer in answers]


@pytest.fixture(scope="module")
def pairs() -> list[tuple[Answer, RubricGrade]]:
    return graded()


def test_every_rubric_has_answers_of_several_voices_and_levels() -> None:
    for identity in RUBRICS:
        answers = written()[identity]
        assert len(answers) >= 4
        assert len({answer["voice"] for answer in answers}) >= 4, identity
        assert len({answer["level"] for answer in answers}) >= 3, identity
        assert {answer["voice"] for answer in answers} & set(NEVER_GOOD), identity
    twice = [text for text, times in Counter(answer["text"] for _, answer in ANSWERS).items() if times > 1]
    assert not twice


@pytest.mark.parametrize(("identity", "answer"), ANSWERS, ids=[answer["id"] for _, answer in ANSWERS])
def test_labels_name_what_the_rubric_has_and_the_level_follows(identity: str, answer: Answer) -> None:
    rubric = catalogue().rubrics[identity]
    assert set(answer) >= FIELDS
    assert set(answer) <= FIELDS | LABELS
    named = [point for label in ("met", "half", "against") for point in answer.get(label, [])]
    assert len(set(named)) == len(named)
    assert set(named) <= {point.id for point in rubric.points}
    assert set(answer.get("critical", [])) <= {mistake.id for mistake in rubric.critical}
    score = round(labelled(answer, rubric)["score"], 4)
    assert answer["level"] == level_of(score, bool(answer.get("critical")), bool(answer.get("floor")))


def test_every_answer_is_graded_within_a_step_of_its_label(pairs: list[tuple[Answer, RubricGrade]]) -> None:
    far = [
        f"{label['id']}: {label['level']}, graded {found.level}"
        for label, found in pairs
        if abs(NAMES.index(label["level"]) - NAMES.index(found.level)) > 1
    ]
    assert not far


def test_points_agree_and_nobody_is_taken_in(pairs: list[tuple[Answer, RubricGrade]]) -> None:
    found = agreement(pairs)
    assert found.kappa >= 0.8
    assert found.rank_correlation >= 0.9
    assert found.taken_in == 0
