"""Claims about the points of rubrics and of interviews' questions, right, half right and wrong, which statements of
answers are compared with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from app.content.schemas import InterviewId, RubricId, Slug, Strict, Text
from app.grading.rubrics.likeness import Claim

CLAIMS = "claims"  # the folder with a file for each rubric and each interview


class PointClaims(Strict):
    """What people say about one point."""

    right: Annotated[tuple[Text, ...], Field(min_length=2)]
    half: tuple[Text, ...] = ()
    wrong: Annotated[tuple[Text, ...], Field(min_length=2)]


PointsClaims = Annotated[dict[Slug, PointClaims], Field(min_length=1)]


class ClaimsFile(Strict):
    """The claims about the points of one rubric."""

    rubric: RubricId
    points: PointsClaims

    def claims(self) -> tuple[Claim, ...]:
        """All of them, in the order of the file."""
        return _in_order(self.points)


class InterviewClaimsFile(Strict):
    """The claims about the points of one interview's questions in words, by question.

    Their expressions see what the question's own do.
    """

    interview: InterviewId
    questions: Annotated[dict[Slug, PointsClaims], Field(min_length=1)]

    def of(self, question: str) -> tuple[Claim, ...]:
        """Those about a question's points, in the order of the file; none where it has none."""
        return _in_order(self.questions.get(question, {}))


def _in_order(points: Mapping[str, PointClaims]) -> tuple[Claim, ...]:
    found: list[Claim] = []
    for point, known in points.items():
        found += [Claim(point, "right", text) for text in known.right]
        found += [Claim(point, "half", text) for text in known.half]
        found += [Claim(point, "wrong", text) for text in known.wrong]
    return tuple(found)
