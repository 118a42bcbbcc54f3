"""The parts of a variant: what is asked, and what an answer to it is worth. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from markupsafe import Markup

from app.content import problem_schemas as schemas
from app.content.questions import (
    carried_by,
    inline,
    make_configuration,
    make_number,
    make_options,
    make_order,
)
from app.grading.grade import Grade, invalid
from app.grading.questions import (
    Carried,
    ChoiceQuestion,
    ConfigurationQuestion,
    NumberQuestion,
    OrderQuestion,
    Question,
    shuffled,
)

Own = Mapping[str, float]  # a learner's own values of earlier parts, in base units


@dataclass(frozen=True)
class Part:
    """A part at a seed. One that is argued in words has a rubric and no question: it is not graded here."""

    source: schemas.AnyPart = field(repr=False)
    prompt: Markup
    question: Question | None
    values: Mapping[str, Any] = field(repr=False, compare=False)

    @property
    def id(self) -> str:
        return self.source.id

    @property
    def kind(self) -> str:
        return self.source.kind

    @property
    def points(self) -> int:
        return self.source.points if self.question else 0

    @property
    def rubric(self) -> str | None:
        """Where it is argued."""
        return self.source.rubric if isinstance(self.source, schemas.TextPart) else None

    @property
    def key(self) -> Any:
        """What is right, as JSON: a number in base units, ids, or a plan's fields. None where there is no key."""
        return self.question.key if self.question else None

    @property
    def key_text(self) -> str:
        """What is right, as a person reads it."""
        return self.question.key_text if self.question else ""

    @property
    def answer_text(self) -> str:
        """What is right, as it would be answered."""
        return self.question.answer_text if self.question else ""

    def said(self, text: str) -> str:
        """An answer as a person reads it."""
        return self.question.said(text) if self.question else text

    def ids(self, text: str) -> list[str]:
        """The options or items that an answer names; none where it cannot be read."""
        if isinstance(self.question, ChoiceQuestion):
            return [option.id for option in self.question.chosen(text) or ()]
        return (
            [item.id for item in self.question.placed(text) or ()] if isinstance(self.question, OrderQuestion) else []
        )

    def filled(self, text: str) -> dict[str, str]:
        """An answer by the fields of its form: the place of each item, or the fields of a plan."""
        return self.question.filled(text) if isinstance(self.question, OrderQuestion | ConfigurationQuestion) else {}

    def grade(self, text: str, own: Own | None = None) -> Grade:
        """What an answer is worth; `own` are the learner's values of earlier parts."""
        if self.question is None:
            return invalid("This part is argued on a page of its own.")
        if isinstance(self.question, NumberQuestion):
            return self.question.grade(text, self._carried(own or {}))
        return self.question.grade(text)

    def _carried(self, own: Own) -> Carried | None:
        """Key and slips as they follow from wrong earlier values; None where none was wrong or they lead nowhere."""
        if not isinstance(self.source, schemas.NumberPart):
            return None
        return carried_by(self.source, self.values, own)


def make_part(
    source: schemas.AnyPart, values: Mapping[str, object], name: str, let: Mapping[str, str] | None = None
) -> Part:
    """The part at a seed; `name` (of problem, revision, part and seed) decides the order of what is offered.

    What `let` computes is looked into when a wrong number is explained. Raises ExpressionError with the field that does
    not compute.
    """
    question = _question(source, values, name, let)
    return Part(source, inline(source.prompt, values, "prompt"), question, values)


def _question(
    source: schemas.AnyPart, values: Mapping[str, object], name: str, let: Mapping[str, str] | None
) -> Question | None:
    if isinstance(source, schemas.NumberPart):
        return make_number(source, values, let)
    if isinstance(source, schemas.ChoicePart):
        return ChoiceQuestion(tuple(shuffled(name, list(make_options(source.options, values)))), source.kind == "set")
    if isinstance(source, schemas.OrderPart):
        made = make_order(source, values)
        return OrderQuestion(
            tuple(shuffled(name, made.items, never=made.right)), made.direction, made.unit, made.message
        )
    return make_configuration(source, values) if isinstance(source, schemas.ConfigurationPart) else None
