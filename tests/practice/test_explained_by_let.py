"""A wrong number is explained by what `let` computes, in problems and in interviews as on cards."""

from __future__ import annotations

import pytest

from app.content.interview_schemas import Interview
from app.content.problem_schemas import NumberPart
from app.content.seeded import with_lets
from app.interview.parts import parts_of
from app.interview.questions import number_of
from app.practice.parts import make_part

LET = {"weights": "2 * n", "moments": "8 * n", "total": "weights + moments"}
VALUES = {**with_lets(LET, {"n": 7e9}), "answer": {}}
QUESTION = {
    "id": "q1",
    "kind": "number",
    "title": "State",
    "prompt": "How much?",
    "minutes": 2,
    "points": 10,
    "explanation": "Ten bytes each.",
    "key": "total",
    "unit": "GB",
}


@pytest.mark.parametrize(("answer", "left_out"), [("56 GB", "weights"), ("14 GB", "moments")])
def test_a_problem_names_the_term_that_was_left_out(answer: str, left_out: str) -> None:
    source = NumberPart.model_validate({"id": "a", "prompt": "How much?", "key": "total", "unit": "GB"})
    message = make_part(source, VALUES, "P01:1:a:0", LET).grade(answer).message
    assert f"left out {left_out}" in message
    assert "left out" not in make_part(source, VALUES, "P01:1:a:0").grade(answer).message


def test_an_interview_names_the_term_that_was_left_out() -> None:
    interview = Interview.model_validate(
        {
            "id": "M1",
            "slug": "short",
            "title": "Short",
            "about": "One question.",
            "concepts": ["memory"],
            "minutes": 3,
            "parameters": {"n": [7e9]},
            "let": LET,
            "questions": [QUESTION],
        }
    )
    (part,) = parts_of(interview)
    assert "left out weights" in number_of(part, VALUES).grade("56 GB").message
