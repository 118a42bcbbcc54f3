"""Numbers that stand in sentences: each must agree with the formula of the same quantity at the inputs of its sentence.

`statements.yaml` says how a quantity is put in words, as a pattern whose groups are the inputs and the figure, and what
it is. Any sentence that is put so is checked, wherever it stands; so is every typed sum, `8 × 16 × 128 = 16,384`.
What others claim is left alone: quotations, shorthands, slips, wrong options and exemplars of weak answers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from app.content.live import Expressions
from app.content.schemas import Slug, Strict, Text
from app.units import MAGNITUDES, factor_of

STATEMENTS = "statements.yaml"
FIGURE, UNIT = "figure", "unit"
RELATIVE = 0.006  # beside the digits it is given with: a third figure may be rounded either way


def _compiles(pattern: str) -> str:
    try:
        groups = re.compile(pattern).groupindex
    except re.error as error:
        raise ValueError(f"no pattern: {error}") from None
    if FIGURE not in groups:
        raise ValueError(f"a pattern needs a group {FIGURE!r}")
    return pattern


class Statement(Strict):
    """One way to say a quantity. `figure` and, where it varies, `unit` are groups of `says`; the others are inputs.

    `holds` is a sentence that is put so and right, `fails` one that is wrong: both are tried when the file is read.
    """

    id: Slug
    says: Annotated[Text, AfterValidator(_compiles)]
    unit: str = ""
    value: Text = Field(description="expression over the groups, in base units")
    holds: Text
    fails: Text

    @model_validator(mode="after")
    def _catches_what_is_wrong(self) -> Statement:
        if list(contradicted(self.holds, self)) or not list(self.sayings(self.holds)):
            raise ValueError(f"{self.holds!r} is to hold, and does not")
        if not list(contradicted(self.fails, self)):
            raise ValueError(f"{self.fails!r} is to be refused, and is not")
        return self

    def sayings(self, text: str) -> Iterator[tuple[str, str, str, float]]:
        """What `text` says of it: the words, the figure, its unit, and what it should be in base units."""
        for match in re.finditer(self.says, text):
            groups = {name: said for name, said in match.groupdict().items() if said is not None}
            unit = groups.pop(UNIT, self.unit)
            figure = groups.pop(FIGURE)
            inputs = {name: _number(said) for name, said in groups.items()}
            yield match.group(), figure, unit, float(Expressions(inputs).number(self.value))


class Statements(Strict):
    """statements.yaml."""

    statements: tuple[Statement, ...] = ()


def contradicted(text: str, statement: Statement) -> Iterator[str]:
    """Why `text` contradicts the statement's formula, for each place where it does."""
    for words, figure, unit, value in statement.sayings(text):
        if not agrees(figure, unit, value):
            yield f"{words!r}: by {statement.value} it is {value / _factor(unit):.6g} {unit}".rstrip()


def agrees(figure: str, unit: str, value: float) -> bool:
    """Whether `figure` is `value`, rounded to the digits it is given with."""
    factor = _factor(unit)
    digits = figure.replace(",", "")
    whole, _, decimals = digits.partition(".")
    last = 10.0 ** -len(decimals) if decimals else 10.0 ** (len(whole) - len(whole.rstrip("0") or "0"))
    allowed = max(last / 2, RELATIVE * abs(value) / factor)
    return abs(float(digits) - value / factor) <= allowed * (1 + 1e-9)


def _number(said: str) -> float:
    return float(said.replace(",", ""))


def _factor(unit: str) -> float:
    return factor_of(unit) if unit else 1.0


_NUMBER_TYPED = r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e\d+)?"
_TERM = rf"{_NUMBER_TYPED}(?: ?(?:[kMGT]i?B(?:/s)?|[kMBT]|%)(?!\w))?"
_CHAIN = rf"{_TERM}(?: ?[×·/+−] ?{_TERM})+"
_NOT_BEFORE = r"(?<![\w.,^×·/+−=≈()-])(?<![×·/+−=≈^()-] )"  # the rest of something longer
_NOT_AFTER = r"(?![\w.,]*\d)(?! ?[×·/+−=≈^()])"
_LEFT = rf"(?P<left>{_CHAIN}) ?[=≈] ?(?P<total>{_TERM})"
_RIGHT = rf"(?P<whole>{_TERM}) ?[=≈] ?(?P<right>{_CHAIN})"
_SUM = re.compile(rf"{_NOT_BEFORE}(?:{_LEFT}|{_RIGHT}){_NOT_AFTER}")
_ITEM = re.compile(rf"(?P<operator>[×·/+−]?) ?(?P<number>{_NUMBER_TYPED})(?: ?(?P<unit>[A-Za-z%]+(?:/s)?))?")


def wrong_sums(text: str) -> Iterator[str]:
    """Typed sums whose sides differ: products and quotients of numbers, added and subtracted, in one unit at most."""
    for match in _SUM.finditer(text):
        chain, total = match["left"] or match["right"], _ITEM.fullmatch(match["total"] or match["whole"])
        worked, units = _worked(chain)
        if worked is None or total is None or len(units) > 1:
            continue
        unit = total["unit"] or ""
        # 2 × 7 = 14 GB: a unit is said once; a share is a plain number on the other side
        side = next(iter(units), "" if unit == "%" else unit)
        value = worked * _size(side) / _size(unit or side)
        if not agrees(total["number"], "", value):
            yield f"{match.group()!r}: {chain} is {value:.6g} {unit or side}".rstrip()


def _size(unit: str) -> float:
    """Base units of a label; B is a billion, and bytes only with a prefix."""
    return MAGNITUDES[unit] if unit in MAGNITUDES else _factor(unit)


def _worked(side: str) -> tuple[float | None, set[str]]:
    """The value of a chain of operators, and the units that stand in it."""
    total, product, units = 0.0, 0.0, set[str]()
    for item in _ITEM.finditer(side):
        number = _number(item["number"])
        if item["unit"]:
            units.add(item["unit"])
        if item["operator"] == "/":
            if not number:
                return None, units
            product /= number
        elif item["operator"] in ("×", "·"):
            product *= number
        else:
            total, product = total + product, -number if item["operator"] == "−" else number
    return total + product, units
