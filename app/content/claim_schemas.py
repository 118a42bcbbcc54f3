"""Claims about the points of rubrics, right, half right and wrong, which statements of answers are compared with."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from app.content.schemas import RubricId, Slug, Strict, Text
from app.grading.rubrics.likeness import Claim

CLAIMS = "claims"  # the folder with a file for each rubric


class PointClaims(Strict):
    """What people say about one point."""

    right: Annotated[tuple[Text, ...], Field(min_length=2)]
    half: tuple[Text, ...] = ()
    wrong: Annotated[tuple[Text, ...], Field(min_length=2)]


class ClaimsFile(Strict):
    """The claims about the points of one rubric."""

    rubric: RubricId
    points: Annotated[dict[Slug, PointClaims], Field(min_length=1)]

    def claims(self) -> tuple[Claim, ...]:
        """All of them, in the order of the file."""
        found: list[Claim] = []
        for point, known in self.points.items():
            found += [Claim(point, "right", text) for text in known.right]
            found += [Claim(point, "half", text) for text in known.half]
            found += [Claim(point, "wrong", text) for text in known.wrong]
        return tuple(found)
