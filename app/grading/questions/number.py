"""A number: graded against its key, and against what follows from a learner's own earlier values."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from app.grading.grade import Grade, invalid
from app.grading.numbers import OMISSION, UNIT, KnownSlip, grade_number, within
from app.grading.omissions import Node
from app.grading.quantities import Unreadable, must_count, read_quantity
from app.units import EXAMPLES, SCALES, scaled

_NUMBER = re.compile(r"^[\d.]+(?:e\d+)?")
EXACT = 0.001  # the largest relative tolerance under which a number of this size has no room beside it
TOGETHER = 1e-6  # relative, within which two mistakes lead to the very same number
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
    structure: Callable[[], Node | None] | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True)
class NumberQuestion:
    """One number: `key` in base units, shown in `unit`; `tolerance` is relative.

    `structure` takes the key apart, when a wrong answer needs it.
    """

    key: float
    unit: str
    tolerance: float
    slips: tuple[KnownSlip, ...] = ()
    structure: Callable[[], Node | None] | None = field(default=None, repr=False, compare=False)
    asked_unit: str | None = None  # what a bare number is taken in, where the question says “how many GB”
    carried: Carried | None = None  # what follows from own wrong values, where they are known when it is asked

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

    @property
    def by_own(self) -> NumberQuestion:
        """The question as it follows from own wrong values; itself where there are none."""
        own = self.carried
        return replace(self, key=own.key, slips=own.slips, structure=own.structure, carried=None) if own else self

    def grade(self, text: str, carried: Carried | None = None) -> Grade:
        """What an answer is worth. What follows from own wrong values counts in full, and so does the key itself."""
        found = self._grade(text)
        asked = replace(self, carried=carried or self.carried)
        if asked.carried is None or found.value is None:
            return found
        mine, parts = asked.by_own, " and ".join(asked.carried.parts)
        follows = within(found.value, mine.key, self.tolerance)
        if found.status == "correct":
            then = f"From your own {parts} it would be {mine.key_text}; what is right counts as well."
            return found if follows else replace(found, message=f"{found.message} {then}".strip())
        if follows:
            message = f"It follows from your own {parts}, so it counts in full."
            return Grade("correct", 1.0, message, found.value)
        forward = mine._grade(text)
        explained = max((found, forward), key=_knows_the_cause)
        return forward if self.carried and not explained.misconception else explained

    def _grade(self, text: str) -> Grade:
        try:
            must_count(text, self.unit)
        except Unreadable as error:
            return invalid(str(error))
        return grade_number(
            text, self.key, self.dimension, self.tolerance, self.slips, VALUE_CREDIT, self.structure, self.asked_unit
        )


def _knows_the_cause(grade: Grade) -> int:
    """How well it is known what was done: a slip by its name, or merely what is missing or in which unit it is."""
    if grade.misconception is None:
        return 0
    return 1 if grade.misconception in (OMISSION, UNIT) else 2


def written_as(unit: str) -> str:
    """How a quantity in `unit` is typed, as "… GB": without a number, which might be the answer, or near it; empty for
    a bare number, of which there is nothing to say."""
    written = _NUMBER.sub("…", UNIT_EXAMPLES.get(unit, EXAMPLES[SCALES[unit][0]]))
    return "" if written == "…" else written


def read_number(text: str, unit: str) -> float:
    """The number in `text`, in base units of what `unit` measures. Raises Unreadable."""
    value = read_quantity(text, SCALES[unit][0]).value
    must_count(text, unit)
    return value


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
    """The slips that can be told apart: in some variants two mistakes lead to the same number, and are named together
    by the first."""
    found: list[KnownSlip] = []
    for slip in slips:
        place = next((n for n, other in enumerate(found) if within(slip.value, other.value, tolerance)), None)
        if place is None:
            found.append(slip)
        elif within(slip.value, found[place].value, TOGETHER):
            first = found[place]
            message = f"{first.message} Or else: {slip.message}"
            found[place] = replace(first, title=f"{first.title}, or {slip.title}", message=message)
    return tuple(found)
