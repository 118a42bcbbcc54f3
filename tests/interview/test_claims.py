"""What is known to be said about the points of an interview's questions: compared with, at the sitting's numbers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.content.catalogue import Catalogue
from app.content.claim_schemas import InterviewClaimsFile
from app.content.composed import compose
from app.content.interview_schemas import Interview
from app.grading.rubrics.grader import grade
from app.grading.rubrics.points import PointGrade
from app.interview.claim_checks import check_interview_claims
from app.interview.drawing import draw, values_of
from app.interview.parts import Part, known_to, parts_of
from app.interview.questions import right_answer, rubric_of, said_of

RIGHT = [
    "The layer's weights are thrown away again after its forward.",
    "Once forward has run, the gathered copy goes.",
]
WRONG = ["The gathered weights stay on every GPU for the whole step.", "Nothing is thrown away after forward."]
FREED = "The gathered weights of a layer are freed after its forward pass."
FEW = ["It is as many bytes as with plain data parallelism.", "The wire carries the weights once."]
BYTES = ["Altogether {{ (3 * weights) | GB }} for each rank.", "Three passes of the weights over the wire."]


def claims(points: dict[str, dict[str, list[str]]]) -> InterviewClaimsFile:
    return InterviewClaimsFile.model_validate({"interview": "M9", "questions": {"q3": points}})


@pytest.fixture
def interview(content: Catalogue) -> Interview:
    """M9 with claims about two of its points alone."""
    copied, file = (
        content.interviews["M9"].model_copy(deep=True),
        claims({"freed": {"right": RIGHT, "wrong": WRONG}, "bytes": {"right": BYTES, "wrong": FEW}}),
    )
    copied.read_with(copied.wordings, copied.challenges, file)
    return copied


def asked(interview: Interview, name: str = "q3") -> tuple[Part, dict[str, object]]:
    values, answers = values_of(interview, draw(interview, 1)), dict[str, str]()
    for part in parts_of(interview):
        known = known_to(part, values, answers)
        if part.id == name and known is not None:
            return part, known
        answers[part.id] = "words" if part.kind == "text" else right_answer(part, values, answers)
    raise AssertionError(name)


def heard(interview: Interview, said: str) -> PointGrade:
    return next(each for each in grade(rubric_of(*asked(interview)), said).points if each.id == "freed")


def test_an_answer_is_compared_with_what_is_known_to_be_said(interview: Interview) -> None:
    assert heard(interview, "Once its forward ran, the copy that was gathered goes.").verdict == "met"
    assert heard(interview, "The gathered weights stay on each GPU for the whole step.").verdict == "contradicted"


def test_claims_have_the_numbers_of_the_sitting_and_the_others_are_read_once(interview: Interview) -> None:
    part, known = asked(interview)
    said = said_of(part, known)
    numbered = next(each for each in said if each.text.startswith("Altogether"))
    assert numbered.text == f"Altogether {3 * float(str(known['weights'])) / 1e9:.4g} GB for each rank."
    assert [each.words is None for each in said].count(True) == 1
    assert rubric_of(part, known).claims is rubric_of(part, known).claims


def test_a_borrowed_question_keeps_the_claims_of_its_home(content: Catalogue, interview: Interview) -> None:
    lender = replace(content, interviews={**content.interviews, "M9": interview})
    head = {"id": "Gabc", "slug": "anything-15-minutes-1", "title": "A bit", "about": "Some.", "minutes": 15}
    composed = compose(lender, ["M9.q3"], head)
    assert parts_of(composed)[0].claims == asked(interview)[0].claims


@pytest.mark.parametrize(
    ("points", "reason"),
    [
        ({"freed": {"right": RIGHT, "wrong": WRONG}}, "no claims about q3.avoid"),
        ({"gone": {"right": RIGHT, "wrong": WRONG}}, "no point q3.gone"),
        ({"freed": {"right": [*RIGHT, "It is {{ nothing_known }}."], "wrong": WRONG}}, "nothing_known"),
        ({"freed": {"right": [FREED] * 4, "wrong": [FREED] * 4}}, "are met"),
    ],
)
def test_the_content_check_says_what_is_wrong_with_claims(
    content: Catalogue, interview: Interview, points: dict[str, dict[str, list[str]]], reason: str
) -> None:
    interview.read_with(interview.wordings, interview.challenges, claims(points))
    found = list(check_interview_claims(replace(content, interviews={"M9": interview})))
    assert any(reason in each and key == "claims/M9.yaml" for key, _, each in found), found
