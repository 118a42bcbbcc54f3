"""Formulas as records that content, the derivation popover and the API find by id or name.

Inputs are typed and ranged, so that a learner may change any of them; what is out of range is a clear error,
never a NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import inf, isfinite
from typing import Any

from labs.spec import SpecError, Violation

Value = float | int | str


@dataclass(frozen=True)
class Input:
    """One argument of a formula. `dimension` is a key of the units table; `choices` makes it a choice, as `words` does
    of a whole number: what its values are called, where they do not say it themselves."""

    name: str
    label: str
    symbol: str
    dimension: str = "count"
    minimum: float = 0.0
    maximum: float = 1e18
    integer: bool = False
    choices: tuple[str, ...] = ()
    default: Value | None = None
    words: Mapping[str, str] = field(default_factory=dict)

    @property
    def options(self) -> tuple[tuple[str, str], ...]:
        """What may be chosen, each with its words; none where any number may be."""
        return tuple((each, self.words.get(each, each)) for each in self.choices or self.words)

    def read(self, value: Any) -> Value:
        """`value` as this input takes it. Raises SpecError naming the input and what is accepted."""
        if self.choices:
            if value not in self.choices:
                raise SpecError([Violation(self.name, value, f"{value!r} is not known here.", ", ".join(self.choices))])
            return str(value)
        try:
            number = float(value)
        except OverflowError:  # a whole number beyond any float
            number = inf
        except (TypeError, ValueError):
            raise SpecError([Violation(self.name, value, f"{value!r} is not a number.", self.accepted)]) from None
        if not isfinite(number) or not self.minimum <= number <= self.maximum:
            raise SpecError([Violation(self.name, value, f"{number:g} is out of range.", self.accepted)])
        if self.integer:
            if number != int(number):
                raise SpecError([Violation(self.name, value, f"{number:g} is not whole.", self.accepted)])
            return int(number)
        return number

    @property
    def accepted(self) -> str:
        whole = "whole numbers " if self.integer else ""
        return ", ".join(self.choices) or f"{whole}{self.minimum:g} to {self.maximum:g}"


# From the inputs to the formula in symbols and with its values, both in LaTeX.
Latex = Callable[[Mapping[str, Any]], tuple[str, str]]
# What the formula's other symbols stand for: those that are no input but follow from one, such as a fit's constants.
Where = Callable[[Mapping[str, Any]], Mapping[str, float]]


@dataclass(frozen=True)
class Formula:
    """A registered formula. `dimension` is that of its value; `unit` is what it is usually written in.

    `example` is the point its page opens at, in SI base units. What it comes to is worked out in tests/theory.
    """

    id: str
    name: str
    title: str
    function: Callable[..., float]
    inputs: tuple[Input, ...]
    dimension: str
    unit: str
    latex: Latex
    source: str
    note: str = ""
    where: Where = lambda _inputs: {}
    example: Mapping[str, Value] = field(kw_only=True)


@dataclass(frozen=True)
class Evaluation:
    """A formula at a point: everything needed to show where the number comes from.

    How it is written is worked out when it is asked for: most numbers are only computed with.
    """

    formula: Formula
    inputs: Mapping[str, Value]
    value: float

    @cached_property
    def _written(self) -> tuple[str, str]:
        return self.formula.latex(self.inputs)

    @property
    def latex(self) -> str:
        """The formula in symbols."""
        return self._written[0]

    @property
    def latex_values(self) -> str:
        """The formula with its values."""
        return self._written[1]

    @cached_property
    def where(self) -> Mapping[str, float]:
        """What the symbols stand for that are no input."""
        return self.formula.where(self.inputs)

    @property
    def symbols(self) -> Mapping[str, float]:
        """The value of every symbol of `latex`: of inputs that are numbers, and what else stands in it."""
        numbers = {each.symbol: self.inputs[each.name] for each in self.formula.inputs if not each.choices}
        return {symbol: float(value) for symbol, value in numbers.items() if symbol} | dict(self.where)


@dataclass
class Registry:
    """All formulas, by name and by id (an id with several outputs answers with its first)."""

    by_name: dict[str, Formula] = field(default_factory=dict)

    def add(self, formula: Formula) -> None:
        if formula.name in self.by_name:
            raise ValueError(f"two formulas are called {formula.name}")
        self.by_name[formula.name] = formula

    def find(self, key: str) -> Formula | None:
        if key in self.by_name:
            return self.by_name[key]
        return next((formula for formula in self.by_name.values() if formula.id == key.upper()), None)


def evaluate(formula: Formula, given: Mapping[str, object]) -> Evaluation:
    """The value of `formula` for `given` inputs (defaults fill the rest). Raises SpecError with every bad input."""
    known = {each.name for each in formula.inputs}
    violations = [
        Violation(name, given[name], f"{formula.id} has no input of that name.", ", ".join(sorted(known)))
        for name in given
        if name not in known
    ]
    inputs: dict[str, Value] = {}
    for each in formula.inputs:
        value = given.get(each.name, each.default)
        if value is None:
            violations.append(Violation(each.name, None, "This is missing.", each.accepted))
            continue
        try:
            inputs[each.name] = each.read(value)
        except SpecError as error:
            violations += error.violations
    if violations:
        raise SpecError(violations)
    return Evaluation(formula, inputs, formula.function(**inputs))
