"""Grading a number: correct, wrong with its likely cause, or invalid (and then not counted)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import log

from app.grading.grade import Grade
from app.grading.omissions import Node, explained
from app.grading.quantities import Unreadable, read_quantity
from app.units import CLOCK, factor_of

# A slip is recognised more narrowly than a right answer is accepted: it names a cause and should not guess.
SLIP_TOLERANCE = 0.01
UNIT = "unit"  # the misconception of the right number in another unit
OMISSION = "omission"  # the misconception of a slip that nobody listed


@dataclass(frozen=True)
class KnownSlip:
    """A wrong answer that has a cause: its value for this variant, in base units. `did` and `learn` are a `Grade`'s."""

    id: str
    value: float
    title: str
    message: str
    cure: str | None = None
    did: str = ""
    learn: str = ""

    @property
    def is_of_units(self) -> bool:
        """Whether bits were taken for bytes: said only where nothing else explains the factor."""
        return self.id.startswith("bits")


def within(value: float, key: float, tolerance: float) -> bool:
    """Whether `value` is at most `tolerance` (relative) off `key`; exact where the key is 0."""
    return abs(value - key) <= tolerance * abs(key) * (1 + 1e-12)


def grade_number(
    text: str,
    key: float,
    dimension: str,
    tolerance: float,
    slips: Sequence[KnownSlip] = (),
    value_credit: float = 0.0,
    structure: Callable[[], Node | None] | None = None,
    asked_unit: str | None = None,
) -> Grade:
    """Grade what was typed against `key` in base units of `dimension`.

    A wrong number is looked for among the listed slips, then in the key's `structure` with one thing left out, then as
    a slip of units, then with two things left out: what was built wrongly is likelier than a wrong prefix.
    `value_credit` is what the right number in the wrong unit is worth, as "112 TB" for 112 GB. A bare number is taken
    in `asked_unit`, where the question names one.
    """
    try:
        quantity = read_quantity(text, dimension, asked_unit)
    except Unreadable as error:
        return Grade("invalid", 0.0, str(error))
    if within(quantity.value, key, tolerance):
        return Grade("correct", 1.0, quantity.taken_as, quantity.value)
    found = _wrong(quantity.value, key, dimension, tolerance, slips, value_credit, structure)
    return replace(found, message=f"{quantity.taken_as} {found.message}".strip())


def _wrong(
    value: float,
    key: float,
    dimension: str,
    tolerance: float,
    slips: Sequence[KnownSlip],
    value_credit: float,
    structure: Callable[[], Node | None] | None,
) -> Grade:
    """A wrong number with its likeliest cause."""
    fitting = [s for s in slips if within(value, s.value, SLIP_TOLERANCE) and not within(s.value, key, tolerance)]
    listed = next((slip for slip in fitting if not slip.is_of_units), None)
    tree = structure() if structure is not None and listed is None else None
    if tree is not None and (says := explained(tree, value, tolerance)):
        return Grade("wrong", 0.0, f"It looks as if {says}.", value, OMISSION, "a part of it is missing")
    if listed := listed or next(iter(fitting), None):
        return Grade(
            "wrong", 0.0, listed.message, value, listed.id, listed.title, listed.cure, listed.did, listed.learn
        )
    if value_credit and (factor := _other_unit(value, key, dimension, tolerance)):
        is_sure = "GiB" not in factor  # a few per cent may be anything
        message = f"The digits are right, and the unit makes them {factor}." if is_sure else f"It is {factor}."
        return Grade(
            "wrong",
            value_credit,
            message,
            value,
            UNIT,
            "right number, wrong unit",
            did="had the digits right and the unit wrong" if is_sure else "",
            learn="Carry the units through to the result" if is_sure else "",
        )
    if tree is not None and (says := explained(tree, value, tolerance, two=True)):
        return Grade("wrong", 0.0, f"It looks as if {says}.", value, OMISSION, "two parts of it are missing")
    return Grade("wrong", 0.0, _how_far(value, key), value)


# By what a wrong unit is off, by dimension: a prefix too many, GiB for GB, ms for s, percent for a fraction.
_THOUSANDS = {1e3: "a thousand times", 1e6: "a million times", 1e9: "a billion times"}
_UNIT_FACTORS: Mapping[str, Mapping[float, str]] = {
    "bytes": _THOUSANDS,
    "bytes_per_second": _THOUSANDS,
    "flop": _THOUSANDS,
    "flop_per_second": _THOUSANDS,
    "tokens": _THOUSANDS,
    "tokens_per_second": _THOUSANDS,
    "seconds": {**_THOUSANDS, **{seconds: f"{seconds:,.0f} times" for seconds in map(factor_of, CLOCK)}},
    "fraction": {100.0: "a hundred times"},
}


def _other_unit(value: float, key: float, dimension: str, tolerance: float) -> str | None:
    """How far off the unit alone is, in words; None when the number is wrong too."""
    if value <= 0 or key <= 0:
        return None
    for factor, words in _UNIT_FACTORS.get(dimension, {}).items():
        if within(value, key * factor, tolerance):
            return f"{words} too large"
        if within(value, key / factor, tolerance):
            return f"{words} too small"
    if dimension == "bytes" and key >= 1e6:  # narrower: a few per cent may be anything
        ratio = 1.024 ** min(4, int(log(key, 1000)))  # GiB over GB, or what belongs to this size
        for factor in (ratio, 1 / ratio):
            if within(value, key * factor, SLIP_TOLERANCE / 2):
                return f"{100 * abs(factor - 1):.2g} % too {'large' if factor > 1 else 'small'}: GB is 10⁹, GiB is 2³⁰"
    return None


def _how_far(value: float, key: float) -> str:
    """A pointer for an answer without a known cause: powers of ten and of two are slips of their own."""
    if value == 0 or key == 0 or (value < 0) != (key < 0):
        return "No known slip leads to this value. Check the formula and the sign."
    ratio = value / key
    for factor, what in ((1000, "a thousand"), (1e6, "a million"), (8, "eight"), (2, "two")):
        also = " Bits for bytes?" if factor == 8 else ""
        if within(ratio, factor, 0.02):
            return f"This is too large by a factor of {what}.{also}"
        if within(ratio, 1 / factor, 0.02):
            return f"This is too small by a factor of {what}.{also}"
    direction = "large" if ratio > 1 else "small"
    return f"This is too {direction} by a factor of {max(ratio, 1 / ratio):.3g}."
