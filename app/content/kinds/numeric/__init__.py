"""A number with other values at every showing: `parameters` are drawn by seed, `let` computes from them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Annotated, cast

from markupsafe import Markup
from pydantic import Field as SchemaField
from pydantic import model_validator

from app.content import seeded
from app.content.kinds.asking import Asked, Listed, Verdict
from app.content.kinds.kind import CardFinding, CheckedKind, Field, Show
from app.content.live import ExpressionError, at
from app.content.questions import inline, lost_slips, make_number, number_findings
from app.content.schemas import Fraction, Slip, Strict, Text, Unit
from app.grading.grade import Grade
from app.grading.questions import NumberQuestion

if TYPE_CHECKING:
    from app.content.card_schemas import CardHead
    from app.content.cards import Card

FEWEST_COMBINATIONS = 8  # fresh numbers that come again soon are not fresh


class Ask(Strict):
    """What is drawn, asked and right; expressions are in SI base units."""

    parameters: dict[str, Annotated[tuple[int | float | str, ...], SchemaField(min_length=1)]]
    where: str | None = None
    let: dict[str, str] = SchemaField({}, description="named values, each computed from those before it")
    prompt: Text
    key: Text = SchemaField(description="expression in SI base units")
    unit: Unit = SchemaField(description="unit the key is shown in")
    tolerance: Fraction = 0.02
    slips: Annotated[tuple[Slip, ...], SchemaField(min_length=1, max_length=6)]

    @model_validator(mode="after")
    def _draws_from_enough(self) -> Ask:
        combinations = prod(len(set(values)) for values in self.parameters.values())
        if combinations < FEWEST_COMBINATIONS:
            raise ValueError(f"the parameters have {combinations} combinations, {FEWEST_COMBINATIONS} are needed")
        return self


class Numeric(CheckedKind):
    name, seconds, place = "numeric", 90, 7
    field = Field("ask", Ask | None, None)
    is_typed = True

    def make(self, head: CardHead, show: Show) -> Ask | None:
        source = self._source(head)
        if source:
            show.part(make=lambda: _asked(source, _values(head, source, 1)))
        return source

    def ask(self, card: Card, seed: int) -> Asked:
        source = self._source(card.head)
        assert source is not None, "only a card with numbers to draw is asked for one"
        question, prompt = _asked(source, _values(card.head, source, seed))
        return Asked(card, seed, self, question, Markup("<p>{}</p>").format(prompt))

    def verdict(self, asked: Asked, answer: str, grade: Grade) -> Verdict:
        number = cast(NumberQuestion, asked.question)
        right = Markup('<span class="num">{}</span>').format(number.key_text)
        if grade.status == "correct":
            message = Markup("It is {}; {} was accepted.").format(right, number.accepted_text)
            return Verdict("correct", message, right=right, credit=grade.credit)
        message = Markup("{}").format(grade.message)
        return Verdict("wrong", message, grade.title or "", grade.cure, right, credit=grade.credit)

    def listed(self, card: Card, seed: int) -> Listed:
        return Listed()

    def findings(self, card: Card) -> Iterator[CardFinding]:
        """At every seed the key grades as right, every slip as wrong, and the numbers do not come again soon."""
        source = self._source(card.head)
        if source is None:
            return
        seen: dict[str, NumberQuestion] = {}
        for seed in seeded.CHECKED_SEEDS:
            try:
                values = _values(card.head, source, seed)
                drawn = ", ".join(f"{name} = {value}" for name, value in values.items())
                if drawn not in seen:
                    seen[drawn], _ = _asked(source, values)
            except ExpressionError as error:
                yield error.location or ("ask",), f"seed {seed}: {error}"
                return
        if len(seen) < FEWEST_COMBINATIONS:
            combinations = f"{len(seeded.CHECKED_SEEDS)} seeds draw {len(seen)} combinations"
            yield ("ask",), f"{combinations}, {FEWEST_COMBINATIONS} are needed"
        yield from _one_of_a_kind(seen)
        ever = {slip.id for number in seen.values() for slip in number.slips}
        for index, slip in enumerate(source.slips):
            if slip.id not in ever:
                yield ("ask", "slips", index), f"slip {slip.id} never differs from the key"

    def _source(self, head: CardHead) -> Ask | None:
        return cast("Ask | None", self.asked_of(head))


def _values(head: CardHead, source: Ask, seed: int) -> dict[str, object]:
    """What is drawn at a seed, and computed from it. Raises ExpressionError with the field."""
    with at("ask"):
        name, lost = f"{head.id}:{head.revision}", partial(lost_slips, source)
        drawn = seeded.draw(name, source.parameters, source.let, source.where, seed, lost)
        return seeded.with_lets(source.let, drawn)


def _asked(source: Ask, values: dict[str, object]) -> tuple[NumberQuestion, Markup]:
    """The number asked for, and its prompt. Raises ExpressionError with the field."""
    with at("ask"):
        return make_number(source, values, source.let), inline(source.prompt, values, "prompt")


def _one_of_a_kind(seen: dict[str, NumberQuestion]) -> Iterator[CardFinding]:
    """Each kind of finding once, with the first draw that shows it."""
    reported: set[str] = set()
    for drawn, number in seen.items():
        for reason in number_findings(number):
            what = reason.split(":", maxsplit=1)[0]
            if what not in reported:
                reported.add(what)
                yield ("ask",), f"{drawn}: {reason}"


KIND = Numeric()
