"""What is heard in words: full answers of another voice than the exemplars', and fluent ones that are wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from app.content.catalogue import Catalogue
from app.content.live import Expressions
from app.grading.levels import is_at_least
from app.grading.rubrics.grader import RubricGrade, grade
from app.interview.drawing import draw, values_of
from app.interview.parts import known_to, parts_of
from app.interview.questions import right_answer, rubric_of

SPOKEN: dict[str, dict[str, str]] = yaml.safe_load((Path(__file__).parent / "spoken.yaml").read_text("utf-8"))


def heard(content: Catalogue, spoken: str, text: str, seed: int = 1) -> RubricGrade:
    """What is heard in `text` as the answer to the part `spoken`, after right answers to all before it."""
    identity, _, wanted = spoken.partition(".")
    interview = content.interviews[identity]
    values, answers = values_of(interview, draw(interview, seed)), dict[str, str]()
    for part in parts_of(interview):
        if part.id == wanted:
            known = known_to(part, values, answers)
            assert known is not None
            expressions = Expressions(known)
            said = " ".join(expressions.text(expressions.fill(text)).split())
            return grade(rubric_of(part, known), said)
        answers[part.id] = "words" if part.kind == "text" else right_answer(part, values, answers)
    raise AssertionError(f"no part {spoken}")


@pytest.mark.parametrize("spoken", SPOKEN["full"])
def test_a_full_answer_in_another_voice_is_heard_as_one(content: Catalogue, spoken: str) -> None:
    found = heard(content, spoken, SPOKEN["full"][spoken])
    assert is_at_least(found.level, "hire"), [each for each in found.points if each.credit < 1]


@pytest.mark.parametrize("spoken", SPOKEN["wrong"])
def test_a_fluent_answer_that_is_wrong_is_heard_as_no_hire(content: Catalogue, spoken: str) -> None:
    found = heard(content, spoken, SPOKEN["wrong"][spoken])
    assert found.level == "no hire", [each for each in found.points if each.credit]


def test_every_text_question_has_its_spoken_answer(content: Catalogue) -> None:
    asked = {
        f"{each.id}.{part.id}" for each in content.interviews.values() for part in parts_of(each) if part.kind == "text"
    }
    assert set(SPOKEN["full"]) == asked


@pytest.mark.parametrize(("rank", "is_heard"), [("{{ stuck }}", True), ("{{ stuck + 1 }}", False)])
def test_a_number_of_the_sitting_must_be_the_right_one(content: Catalogue, rank: str, is_heard: bool) -> None:
    found = heard(content, "M2.hang", f"Rank {rank} never entered the all-reduce.")
    assert [each.id for each in found.points if each.credit] == (["missing-rank"] if is_heard else [])
