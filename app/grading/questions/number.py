"""A number: graded against its key, and against what follows from a learner's own earlier values."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from app.grading.grade import Grade
from app.grading.numbers import KnownSlip, grade_number, within
from app.grading.omissions import Node
from app.grading.quantities import read_quantity
from app.units import EXAMPLES, SCALES, scaled

_NUMBER = re.compile(r"^[\d.]+(?:e\d+)?")
EXACT = 0.001  # the largest relative tolerance under which a number of this size has no room beside it
SEEN = "That is what it is. It does not follow from your number before it, which it puts right."
VALUE_CREDIT = 0.5  # the number is right, its unit is not
UNIT_EXAMPLES = {
    "×": "1.5×",
    "billion": "7B",
    "s": "2.2 s",
    "min": "75 min",
    "h": "36 h",
    "days": "30 days",
    "MB": "350 MB",
    "GPU-hours": "1e6 GPU-hours",
}


@dataclass(frozen=True)
class Carried:
    """What is right after wrong values of `parts`, a learner's own: key and slips as they follow from these."""

    parts: tuple[str, ...]
    key: float
    slips: tuple[KnownSlip, ...]


@dataclass(frozen=True)
class NumberQuestion:
    """One number: `key` in base units, shown in `unit`; `tolerance` is relative.

    `structure` takes the key apart, when a wrong answer needs it. Where the key follows from a wrong earlier number of
    one's own, `so_anyway` is what it would be without that mistake: whoever sees it and says what is so is right.
    """

    key: float
    unit: str
    tolerance: float
    slips: tuple[KnownSlip, ...] = ()
    structure: Callable[[], Node | None] | None = field(default=None, repr=False, compare=False)
    asked_unit: str | None = None  # what a bare number is taken in, where the question says “how many GB”
    carried: Carried | None = None  # what follows from own wrong values, where they are known when it is asked
    so_anyway: float | None = None

    @property
    def dimension(self) -> str:
        return SCALES[self.unit][0]

    @property
    def key_text(self) -> str:
        """What is right, as a person reads it."""
        return scaled(self.key, self.unit)

    @property
    def answer_text(self) -> str:
        """What is right, as it would be answered."""
        return self.key_text

    @property
    def accepted_text(self) -> str:
        """The range that counts as right."""
        low, high = self.key * (1 - self.tolerance), self.key * (1 + self.tolerance)
        return f"{scaled(low, self.unit, 3).removesuffix(self.unit).strip()} to {scaled(high, self.unit, 3)}"

    @property
    def written_as(self) -> str:
        """How an answer may be written."""
        return written_as(self.unit)

    @property
    def is_exact(self) -> bool:
        """Whether a whole number is asked for, with no room beside it."""
        return self.tolerance <= EXACT

    def said(self, text: str) -> str:
        """An answer as a person reads it."""
        return text

    def grade(self, text: str, carried: Carried | None = None) -> Grade:
        """What an answer is worth. What follows from own wrong values counts in full, and so does the key itself."""
        found = self._grade(text, self.key, self.slips)
        if found.value is not None and found.status == "wrong" and self.is_so_anyway(found.value):
            return Grade("correct", 1.0, SEEN, found.value)
        carried = carried or self.carried
        if carried is None or found.status != "wrong" or found.value is None:
            return found
        if within(found.value, carried.key, self.tolerance):
            message = f"It follows from your own {' and '.join(carried.parts)}, so it counts in full."
            return Grade("correct", 1.0, message, found.value)
        if found.misconception:
            return found
        forward = self._grade(text, carried.key, carried.slips)
        return forward if forward.misconception else found

    def is_so_anyway(self, value: float) -> bool:
        """Whether a value is right though it does not follow from the own number before it."""
        return self.so_anyway is not None and within(value, self.so_anyway, self.tolerance)

    def _grade(self, text: str, key: float, slips: Sequence[KnownSlip]) -> Grade:
        whole = self.structure if key == self.key else None
        return grade_number(text, key, self.dimension, self.tolerance, slips, VALUE_CREDIT, whole, self.asked_unit)


def written_as(unit: str) -> str:
    """How a quantity in `unit` is typed, as "… GB": without a number, which might be the answer, or near it."""
    return _NUMBER.sub("…", UNIT_EXAMPLES.get(unit, EXAMPLES[SCALES[unit][0]]))


def read_number(text: str, unit: str) -> float:
    """The number in `text`, in base units of what `unit` measures. Raises Unreadable."""
    return read_quantity(text, SCALES[unit][0]).value


def carried_values(
    wanted: Iterable[str], own: Mapping[str, float], right: Mapping[str, float] | None = None
) -> dict[str, float] | None:
    """What a question that builds on `wanted` goes by: the learner's own values, else the right ones.

    None where a value is neither, as in an interview, which does not tell what would have been right.
    """
    known = {**(right or {}), **own}
    asked = list(wanted)
    return None if any(each not in known for each in asked) else {each: known[each] for each in asked}


def distinct_slips(slips: Sequence[KnownSlip], tolerance: float) -> tuple[KnownSlip, ...]:
    """The slips that can be told from all before them: in some variants two mistakes lead to the same number."""
    found: list[KnownSlip] = []
    for slip in slips:
        if not any(within(slip.value, other.value, tolerance) for other in found):
            found.append(slip)
    return tuple(found)
