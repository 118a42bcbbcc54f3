"""The parts of a variant: what is asked, what is right, and what an answer to it is worth. Pure.

An answer is a text whatever the kind: a quantity, the ids of options or of items in order, or a plan's fields.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from markupsafe import Markup

from app.content import problem_schemas as schemas
from app.content.live import ExpressionError, Expressions
from app.content.seeded import SeededNumber, known_slips
from app.grading.numbers import Grade, KnownSlip, grade_number, within
from app.grading.units import EXAMPLES
from app.practice.configurations import Configurations
from app.theory.units import scaled

EXACT = 0.001
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
VALUE_CREDIT = 0.5  # of a part: the number is right, its unit is not
Own = Mapping[str, float]  # a learner's own values of earlier parts, in base units
_WORDS = re.compile(r"[^\s,;>→]+")


@dataclass(frozen=True)
class Part:
    """What all kinds of parts share. A part without points is not graded here."""

    id: str
    kind: str
    prompt: Markup
    points: int

    @property
    def key_text(self) -> str:
        """What is right, as a person reads it."""
        return ""

    @property
    def answer_text(self) -> str:
        """What is right, as it would be answered."""
        return self.key_text

    def grade(self, text: str, own: Own | None = None) -> Grade:
        """What an answer is worth; `own` are the learner's values of earlier parts."""
        return Grade("invalid", 0.0, "This part is argued on a page of its own.")

    def said(self, text: str) -> str:
        """An answer as a person reads it."""
        return text


@dataclass(frozen=True)
class NumberAsked(SeededNumber):
    """A number, graded against the key and, where it carries, against what follows from the learner's own values."""

    id: str
    points: int
    source: schemas.NumberPart = field(repr=False)
    values: Mapping[str, Any] = field(repr=False, compare=False)
    kind: str = "number"

    @property
    def answer_text(self) -> str:
        """What is right, as it would be answered."""
        return self.key_text

    @property
    def example(self) -> str:
        """Some answer to something else in the same unit: how it may be written."""
        return UNIT_EXAMPLES.get(self.unit, EXAMPLES[self.dimension])

    @property
    def is_exact(self) -> bool:
        """Whether a whole number is asked for, with no room beside it."""
        return self.tolerance <= EXACT

    def grade(self, text: str, own: Own | None = None) -> Grade:
        found = grade_number(text, self.key, self.dimension, self.tolerance, self.slips, VALUE_CREDIT)
        if found.status != "wrong" or found.value is None:
            return found
        carried = self._carried(own or {})
        if carried is None:
            return found
        key, slips = carried
        if within(found.value, key, self.tolerance):
            message = f"It follows from your own {' and '.join(self.source.carries)}, so it counts in full."
            return Grade("correct", 1.0, message, found.value)
        if found.misconception:
            return found
        forward = grade_number(text, key, self.dimension, self.tolerance, slips, VALUE_CREDIT)
        return forward if forward.misconception else found

    def _carried(self, own: Own) -> tuple[float, tuple[KnownSlip, ...]] | None:
        """Key and slips as they follow from wrong earlier values; None where those lead nowhere."""
        right = self.values["answer"]
        mine = {part: own[part] for part in self.source.carries if part in own and own[part] != right[part]}
        if not mine:
            return None
        values = {**self.values, "answer": {**right, **mine}}
        try:
            key = float(Expressions(values).number(self.source.key))
            if key <= 0:
                return None
            slips = known_slips(self.source.slips, key, self.tolerance, values)
            return key, told_apart(slips, self.tolerance)
        except (ExpressionError, OverflowError):
            return None

    def said(self, text: str) -> str:
        """An answer as a person reads it."""
        return text


@dataclass(frozen=True)
class Ticked:
    """An option at a seed."""

    id: str
    text: Markup
    correct: bool
    message: str
    cure: str | None


@dataclass(frozen=True)
class ChoiceAsked(Part):
    """One option, or all that are right: each wrong tick takes back what a right one gives."""

    options: tuple[Ticked, ...]

    @property
    def right(self) -> tuple[Ticked, ...]:
        return tuple(option for option in self.options if option.correct)

    @property
    def key(self) -> list[str]:
        return [option.id for option in self.right]

    @property
    def answer_text(self) -> str:
        return ", ".join(self.key)

    @property
    def key_text(self) -> str:
        return "; ".join(option.text.striptags() for option in self.right)

    def said(self, text: str) -> str:
        chosen = self.chosen(text)
        return text if chosen is None else "; ".join(option.text.striptags() for option in chosen)

    def grade(self, text: str, own: Own | None = None) -> Grade:
        chosen = self.chosen(text)
        accepted = ", ".join(option.id for option in self.options)
        if not chosen:
            return Grade("invalid", 0.0, f"That is none of the options. Accepted: {accepted}.")
        if self.kind == "choice" and len(chosen) > 1:
            return Grade("invalid", 0.0, "One option is asked for, and several were given.")
        misjudged = [option for option in self.options if option.correct != (option in chosen)]
        if not misjudged:
            return Grade("correct", 1.0, " ".join(option.message for option in chosen))
        told = chosen if self.kind == "choice" else misjudged
        ticked = next((option for option in misjudged if not option.correct), misjudged[0])
        hits, wrong = sum(option.correct for option in chosen), sum(not option.correct for option in chosen)
        credit = round(max(0.0, (hits - wrong) / len(self.right)), 4)
        cure = next((option.cure for option in told if option.cure), None)
        return Grade("wrong", credit, " ".join(option.message for option in told), None, ticked.id, None, cure)

    def chosen(self, text: str) -> list[Ticked] | None:
        """The options named, by id or by their whole text; None when something else is named."""
        by_name = {option.id: option for option in self.options}
        whole = {option.text.striptags().lower(): option for option in self.options}
        if text.strip().lower() in whole:
            return [whole[text.strip().lower()]]
        names = [word.lower() for word in _WORDS.findall(text)]
        if any(name not in by_name for name in names):
            return None
        return [by_name[name] for name in dict.fromkeys(names)]


@dataclass(frozen=True)
class Placed:
    """An item to put in order at a seed."""

    id: str
    text: Markup
    value: float


@dataclass(frozen=True)
class OrderAsked(Part):
    """Items in order: every pair that stands wrong takes its share of the credit twice."""

    items: tuple[Placed, ...]
    direction: str
    unit: str | None
    message: str

    @property
    def key(self) -> list[str]:
        return [item.id for item in self._sorted()]

    @property
    def answer_text(self) -> str:
        return ", ".join(self.key)

    @property
    def key_text(self) -> str:
        shown = [
            item.text.striptags() + (f" ({scaled(item.value, self.unit)})" if self.unit else "")
            for item in self._sorted()
        ]
        return ", ".join(shown)

    def said(self, text: str) -> str:
        named = self._named(text)
        return text if named is None else ", ".join(item.text.striptags() for item in named)

    def grade(self, text: str, own: Own | None = None) -> Grade:
        named = self._named(text)
        if named is None:
            accepted = ", ".join(item.id for item in self.items)
            return Grade("invalid", 0.0, f"Give each of these exactly one place: {accepted}.")
        pairs = list(combinations(named, 2))
        standing = sum(self._may_precede(before, after) for before, after in pairs)
        if standing == len(pairs):
            return Grade("correct", 1.0, "")
        return Grade("wrong", round(max(0.0, 2 * standing / len(pairs) - 1), 4), self.message)

    def filled(self, text: str) -> dict[str, str]:
        """The place given to each item, for the fields of the form."""
        return {item.id: str(place) for place, item in enumerate(self._named(text) or (), 1)}

    def _sorted(self) -> list[Placed]:
        return sorted(self.items, key=lambda item: item.value, reverse=self.direction == "descending")

    def _may_precede(self, before: Placed, after: Placed) -> bool:
        if within(before.value, after.value, 1e-9):
            return True
        return (before.value < after.value) == (self.direction == "ascending")

    def _named(self, text: str) -> list[Placed] | None:
        by_id = {item.id: item for item in self.items}
        names = [word.lower() for word in _WORDS.findall(text)]
        return [by_id[name] for name in names] if sorted(names) == sorted(by_id) else None


@dataclass(frozen=True)
class ConfigurationAsked(Part):
    """Fields of a plan, judged by the theory library."""

    judge: Configurations = field(repr=False)

    @property
    def fields(self) -> Mapping[str, tuple[int | str, ...]]:
        return self.judge.fields

    @property
    def key(self) -> dict[str, int | str]:
        return self.judge.best().chosen

    @property
    def key_text(self) -> str:
        return self.judge.best().text

    def filled(self, text: str) -> dict[str, str]:
        """What was chosen for each field, for the fields of the form."""
        return self.judge.filled(text)

    def grade(self, text: str, own: Own | None = None) -> Grade:
        return self.judge.grade(text)


@dataclass(frozen=True)
class Argued(Part):
    """Something to argue in words, on the page of its rubric."""

    rubric: str


AnyPart = NumberAsked | ChoiceAsked | OrderAsked | ConfigurationAsked | Argued


def told_apart(slips: Sequence[KnownSlip], tolerance: float) -> tuple[KnownSlip, ...]:
    """The slips that can be told from all before them: in some variants two mistakes lead to the same number."""
    found: list[KnownSlip] = []
    for slip in slips:
        if not any(within(slip.value, other.value, tolerance) for other in found):
            found.append(slip)
    return tuple(found)
