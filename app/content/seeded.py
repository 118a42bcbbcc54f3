"""Numbers drawn by seed: parameters, what is computed from them, keys and slips. The same for ever on every machine.

Problems and cards ask with them; what they store is the seed, never the numbers' keys.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from app.content.live import ExpressionError, Expressions, at
from app.content.markdown import render_inline
from app.content.schemas import Slip
from app.grading.numbers import Grade, KnownSlip, grade_number, within
from app.theory.units import SCALES, scaled

MOST_DRAWS = 200
CHECKED_SEEDS = range(200)  # what the content checks look at

Drawn = Mapping[str, Any]
Choices = Mapping[str, Sequence[int | float | str]]


@dataclass(frozen=True)
class SeededNumber:
    """One number at a seed: what is asked and what is right, in base units."""

    prompt: Markup
    key: float
    unit: str
    tolerance: float
    slips: tuple[KnownSlip, ...]

    @property
    def dimension(self) -> str:
        return SCALES[self.unit][0]

    @property
    def key_text(self) -> str:
        return scaled(self.key, self.unit)

    @property
    def accepted_text(self) -> str:
        """The range that counts as right."""
        low, high = self.key * (1 - self.tolerance), self.key * (1 + self.tolerance)
        return f"{scaled(low, self.unit, 3).removesuffix(self.unit).strip()} to {scaled(high, self.unit, 3)}"

    def grade(self, text: str) -> Grade:
        return grade_number(text, self.key, self.dimension, self.tolerance, self.slips)


def draw(name: str, choices: Choices, let: Mapping[str, str], where: str | None, seed: int) -> dict[str, Any]:
    """One of each of `choices`, decided by `name` (item and revision) and `seed`.

    Raises ExpressionError when none of the draws satisfies `where`.
    """
    # a seeded generator, not a secret: the same seed must give the same variant on every machine
    source = random.Random(f"{name}:{seed}")  # noqa: S311
    for _ in range(MOST_DRAWS):
        drawn: dict[str, Any] = {each: source.choice(values) for each, values in choices.items()}
        values = with_lets(let, drawn)
        with at("where"):
            if where is None or Expressions(values).truth(where):
                return drawn
    with at("where"):
        raise ExpressionError(f"no combination of parameters satisfies {where!r}")


def with_lets(let: Mapping[str, str], drawn: Drawn) -> dict[str, Any]:
    """Drawn parameters and what `let` computes from them."""
    values = dict(drawn)
    for name, expression in let.items():
        with at("let", name):
            values[name] = Expressions(values).value(expression)
    return values


def make_number(
    prompt: str, key: str, unit: str, tolerance: float, slips: Sequence[Slip], values: Mapping[str, Any]
) -> SeededNumber:
    """The number asked for `values`. Raises ExpressionError with the field that does not compute."""
    with at("key"):
        right = float(Expressions(values).number(key))
    with at("prompt"):
        shown = render_inline(prompt, Expressions(values))
    with at("slips"):
        known = known_slips(slips, right, tolerance, values)
    return SeededNumber(shown, right, unit, tolerance, known)


def known_slips(
    slips: Sequence[Slip], key: float, tolerance: float, values: Mapping[str, Any]
) -> tuple[KnownSlip, ...]:
    """The slips of a variant. One whose value would count as right cannot be told from right and is left out."""
    found = []
    for index, slip in enumerate(slips):
        with at(index, "value"):
            value = float(Expressions(values).number(slip.value))
        if not within(value, key, tolerance):
            with at(index, "message"):
                message = render_inline(slip.message, Expressions(values)).striptags()
            found.append(KnownSlip(slip.id, value, slip.title, message, slip.cure))
    return tuple(found)


def number_findings(number: SeededNumber) -> Iterator[str]:
    """What is wrong with a number at its seed: the key must grade as right, every slip as wrong."""
    if number.key <= 0:
        yield f"the key is {number.key}: a relative tolerance needs a positive one"
    own = number.grade(number.key_text)
    if own.status != "correct":
        yield f"the key as it is shown grades as {own.status}: {number.key_text}"
    for slip in number.slips:
        found = number.grade(f"{slip.value!r} {_BASE_UNITS[number.dimension]}")
        if found.status != "wrong":
            yield f"slip {slip.id} grades as {found.status}: {slip.value}"


_BASE_UNITS = {
    "bytes": "B",
    "seconds": "s",
    "flop": "FLOPs",
    "tokens": "tokens",
    "fraction": "x",
    "count": "",
    "bytes_per_second": "B/s",
    "flop_per_second": "FLOP/s",
    "tokens_per_second": "tokens/s",
}
