"""The fields every card's file has. Those of a kind stand with the kind, in `app.content.kinds`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from app.content.diagrams.schema import Diagram
from app.content.schemas import CardId, Related, Revision, Slug, StateBars, Strict, Text


class CardHead(Strict):
    """The front matter of a card's file; its body has the sections Question, Answer, Shorthand, Precise, Trap."""

    id: CardId
    revision: Revision = 1
    title: Text
    kind: str
    concepts: Annotated[tuple[Slug, ...], Field(min_length=1)]
    source: Text
    related: Related = Related()
    cluster: Slug | None = Field(None, description="shared by cards that are near to each other")
    seconds: Annotated[int | None, Field(ge=5, le=900)] = Field(None, description="expected to answer; else the kind's")
    given: dict[Text, Text] = Field({}, description="figures that no formula gives, each with where it is from")
    figure: StateBars | None = None
    diagram: Diagram | None = None

    @model_validator(mode="after")
    def _shows_one_picture(self) -> CardHead:
        if self.figure and self.diagram:
            raise ValueError("a card carries one of figure and diagram, not both")
        return self
