"""Questions made from content at a variant: keys, slips, options, items and plans computed from its values.

What is drawn by seed is in `seeded`; what an answer is worth, in `app.grading.questions`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

from markupsafe import Markup

from app.content.live import ExpressionError, Expressions, at
from app.content.markdown import render_inline
from app.content.problem_schemas import ConfigurationPart, NumberPart
from app.content.problem_schemas import OrderItem as ItemSource
from app.content.schemas import Slip
from app.content.seeded import Lost
from app.content.structures import structure_of
from app.grading.numbers import SLIP_TOLERANCE, KnownSlip, within
from app.grading.questions import (
    Carried,
    ConfigurationQuestion,
    LayoutQuestion,
    NumberQuestion,
    Option,
    OrderItem,
    OrderQuestion,
    carried_values,
    distinct_slips,
)
from app.grading.questions.order import Direction
from app.units import SCALES, UNITS

Values = Mapping[str, Any]  # what expressions see of a variant

# A number in a text, and what stands behind it.
_QUANTITY = re.compile(r"(?P<number>\d(?:[\d,]*\d)?(?:\.\d+)?(?:e\d+)?)(?: ?(?:[A-Za-zµ]+(?:/s)?|%|×))?")
_EXPRESSION = re.compile(r"\$\{(.+)\}", re.DOTALL)


class NumberSource(Protocol):
    """What content says of a number: `key` and the slips' values are expressions in base units."""

    @property
    def key(self) -> str | None: ...
    @property
    def unit(self) -> str | None: ...
    @property
    def tolerance(self) -> float: ...
    @property
    def slips(self) -> Sequence[Slip]: ...


class OptionSource(Protocol):
    """What content says of an option; `correct` may be a condition on the variant."""

    @property
    def id(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def correct(self) -> bool | str: ...
    @property
    def message(self) -> str: ...


class OrderSource(Protocol):
    """What content says of an order: its items, and where their values lead."""

    @property
    def items(self) -> Sequence[ItemSource]: ...
    @property
    def direction(self) -> Direction: ...
    @property
    def unit(self) -> str | None: ...
    @property
    def message(self) -> str: ...


def make_number(source: NumberSource, values: Values, let: Mapping[str, str] | None = None) -> NumberQuestion:
    """The number asked for `values`; a wrong answer looks into what `let` computes as well.

    Raises ExpressionError with the field that does not compute.
    """
    assert source.key is not None, "asked of numbers alone"
    assert source.unit is not None, "asked of numbers alone"
    expressions = Expressions(values)
    with at("key"):
        key = float(expressions.number(source.key))
    with at("slips"):
        known = list(_known_slips(source.slips, key, source.tolerance, expressions))
    slips = distinct_slips(known, min(source.tolerance, SLIP_TOLERANCE))
    structure = partial(structure_of, source.key, let or {}, values)
    return NumberQuestion(key, source.unit, source.tolerance, slips, structure, _unit_asked_for(source))


def lost_slips(source: NumberSource, values: Values) -> Lost:
    """How many slips of a number a variant cannot name. Raises ExpressionError with the field."""
    assert source.key is not None, "asked of numbers alone"
    expressions = Expressions(values)
    with at("key"):
        key = float(expressions.number(source.key))
    with at("slips"):
        wrong = [value for _, value in _wrong_values(source.slips, key, source.tolerance, expressions)]
    met = sum(any(within(value, other, source.tolerance) for other in wrong[:i]) for i, value in enumerate(wrong))
    return Lost(met, len(source.slips) - len(wrong))


def _unit_asked_for(source: NumberSource) -> str | None:
    """The unit that a prompt asks for in so many words: “how many GB”."""
    prompt = getattr(source, "prompt", "")
    named = re.search(rf"how many {re.escape(source.unit)}\b", prompt, re.IGNORECASE) if source.unit else None
    return source.unit if named and source.unit in UNITS else None


def follow_own(source: NumberSource, values: Values) -> NumberQuestion | None:
    """The number as it follows from a learner's own values of earlier ones, which `values` hold.

    None where they lead to no positive number: nothing divides by 0, and a relative tolerance needs something to be
    relative to.
    """
    try:
        found = make_number(source, values)
    except (ExpressionError, OverflowError):
        return None
    return found if found.key > 0 else None


def carried_by(source: NumberPart, values: Values, own: Mapping[str, float]) -> Carried | None:
    """Key and slips as they follow from wrong earlier values among a learner's `own`, by part; `values` hold the right
    ones as `answer`. None where none was wrong or they lead nowhere."""
    right = values["answer"]
    mine = carried_values(source.carries, own, right) or {}
    changed = tuple(part for part, value in mine.items() if value != right[part])
    if not changed:
        return None
    found = follow_own(source, {**values, "answer": {**right, **mine}})
    return Carried(source.carries, found.key, found.slips, found.structure) if found else None


def _known_slips(slips: Sequence[Slip], key: float, tolerance: float, expressions: Expressions) -> Iterator[KnownSlip]:
    """The slips of a variant, with their words."""
    for index, value in _wrong_values(slips, key, tolerance, expressions):
        slip = slips[index]
        with at(index, "message"):
            message = render_inline(slip.message, Expressions(expressions.values)).striptags()
        yield KnownSlip(slip.id, value, slip.title, message, slip.cure, slip.did or "", slip.learn or "")


def _wrong_values(
    slips: Sequence[Slip], key: float, tolerance: float, expressions: Expressions
) -> Iterator[tuple[int, float]]:
    """Where each slip leads, with its place. One whose value would count as right cannot be told from right and is
    left out."""
    for index, slip in enumerate(slips):
        with at(index, "value"):
            value = float(expressions.number(slip.value))
        if not within(value, key, tolerance):
            yield index, value


def number_findings(number: NumberQuestion) -> Iterator[str]:
    """What is wrong with a number at its seed: the key must grade as right, every slip as wrong and as itself."""
    if number.key <= 0:
        yield f"the key is {number.key}: a relative tolerance needs a positive one"
    own = number.grade(number.key_text)
    if own.status != "correct":
        yield f"the key as it is shown grades as {own.status}: {number.key_text}"
    for slip in number.slips:
        found = number.grade(f"{slip.value / SCALES[number.unit][1]!r} {number.unit}")
        if found.status != "wrong":
            yield f"slip {slip.id} grades as {found.status}: {slip.value}"
        if found.misconception != slip.id:
            yield f"slip {slip.id} is taken for {found.misconception}: {slip.value}"


def hint_findings(hint: str, number: NumberQuestion) -> Iterator[str]:
    """What is wrong with the plain words of a hint to a number: it must not say what is right, to the tolerance."""
    asked = replace(number, slips=(), structure=None)  # right or not is all that is asked here
    for found in _QUANTITY.finditer(hint):
        said = found["number"] if number.dimension == "count" else found[0]  # a count of whatever is named behind it
        if asked.grade(said).status == "correct":
            yield f"a hint says what is right, {said}"


def make_options(source: Sequence[OptionSource], values: Values) -> Iterator[Option]:
    """The options at a variant, their messages as plain text. Raises ExpressionError."""
    for index, option in enumerate(source):
        with at("options", index):
            with at("correct"):
                right = option.correct
                correct = Expressions(values).truth(right) if isinstance(right, str) else right
            text, message = inline(option.text, values, "text"), inline(option.message, values, "message")
            did = inline(getattr(option, "did", None) or "", values, "did")
        yield Option(
            option.id,
            text,
            correct,
            message.striptags(),
            getattr(option, "cure", None),
            str(did.striptags()),
        )


def make_order(source: OrderSource, values: Values) -> OrderQuestion:
    """The items to put in order at a variant. Raises ExpressionError."""
    items = []
    for index, item in enumerate(source.items):
        with at("items", index):
            with at("value"):
                value = float(Expressions(values).number(item.value))
            items.append(OrderItem(item.id, inline(item.text, values, "text"), value))
    message = inline(source.message, values, "message").striptags()
    return OrderQuestion(tuple(items), source.direction, source.unit, message)


def make_configuration(source: ConfigurationPart, values: Values) -> ConfigurationQuestion:
    """The plan to fill in at a variant. Raises ExpressionError for what is no field, or an expression that fails."""
    with at("plan"):
        plan = _filled(source.plan, Expressions(values))
        question = ConfigurationQuestion(plan, source.fields, source.objective, source.within)
        if question.problem:
            raise ExpressionError(question.problem)
    return question


class LaidOutSource(Protocol):
    """What content says of a known layout."""

    @property
    def mistake(self) -> str | None: ...
    @property
    def cure(self) -> str | None: ...


class LayoutSource(Protocol):
    """What content says of a layout: the request without degrees, and known layouts with their cures."""

    @property
    def plan(self) -> Mapping[str, Any] | None: ...
    @property
    def within(self) -> float: ...
    @property
    def layouts(self) -> Sequence[LaidOutSource]: ...


def make_layout(source: LayoutSource, values: Values) -> LayoutQuestion:
    """The cluster to lay axes on at a variant. Raises ExpressionError."""
    assert source.plan is not None, "asked of layouts alone"
    with at("plan"):
        plan = _filled(source.plan, Expressions(values))
    cures = {each.mistake: each.cure for each in source.layouts if each.mistake and each.cure}
    return LayoutQuestion(plan, source.within, cures)


def inline(text: str, values: Values, *location: str | int) -> Markup:
    """A line of content with its numbers. Raises ExpressionError that names the field."""
    with at(*location):
        return render_inline(text, Expressions(values))


def _filled(data: Any, expressions: Expressions) -> Any:
    """A plan with its `${…}` computed."""
    if isinstance(data, dict):
        return {name: _filled(value, expressions) for name, value in data.items()}
    match = _EXPRESSION.fullmatch(data) if isinstance(data, str) else None
    if match is None:
        return data
    value = expressions.value(match.group(1))
    whole = isinstance(value, float) and value.is_integer() and abs(value) < 2**53
    return int(value) if whole else value
