"""The schema of `mended.yaml`: statements of the content that were wrong and were mended, and what holds instead."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from app.content.rubric_schemas import Evidence
from app.content.schemas import Slug, Strict, Text

MENDED = "mended.yaml"


class MendedStatement(Strict):
    """What was wrong, as evidence in `says` and as it stood, each sentence in `stood`; what holds, in `so` with numbers
    of theory. `passes` are right and use nearly the words of `says`. `right` is evidence of what holds, as it must be
    found in every source of `taught_by` (a card's id, reference/<slug>, rubrics/<id>).
    """

    id: Slug
    says: Evidence = ()
    stood: Annotated[tuple[Text, ...], Field(min_length=1)]
    passes: tuple[Text, ...] = ()
    so: Text
    right: Evidence = ()
    taught_by: tuple[Text, ...] = ()
    source: Text

    @model_validator(mode="after")
    def _can_fail(self) -> MendedStatement:
        if not self.says and not self.right:
            raise ValueError(
                "give says, what is not to stand anywhere, or right with taught_by, what is to stand there"
            )
        if self.says and not self.passes:
            raise ValueError("says needs passes: what is right in nearly the same words")
        if any("&&" in line for line in (*self.says, *self.right)):
            raise ValueError("evidence here stands in one sentence: no &&")
        if bool(self.right) != bool(self.taught_by):
            raise ValueError("right and taught_by go together: what is to be found, and where")
        return self


class Mended(Strict):
    """mended.yaml."""

    mended: tuple[MendedStatement, ...] = ()
