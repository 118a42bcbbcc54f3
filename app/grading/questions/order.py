"""An order: every pair that stands wrong takes its share of the credit twice, so that guessing earns nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

from markupsafe import Markup

from app.grading.grade import Grade, invalid
from app.grading.numbers import within
from app.grading.questions.reading import incomplete, read_ids
from app.units import scaled
from app.words import capital, number_in_words

Direction = Literal["ascending", "descending"]

SAME = 1e-9  # values this close, relative, may stand either way


@dataclass(frozen=True)
class OrderItem:
    """An item to put in its place: the place is decided by `value`."""

    id: str
    text: Markup
    value: float


@dataclass(frozen=True)
class OrderQuestion:
    """Items to put in order. Those of equal value, and those that read the same, may change places.

    `message` is said of a wrong order; without one it says how many of each `noun` are in place, and how
    many pairs are in order, which is what it is worth.
    """

    items: tuple[OrderItem, ...]
    direction: Direction = "ascending"
    unit: str | None = None
    message: str = ""
    noun: str = "item"

    @property
    def right(self) -> tuple[OrderItem, ...]:
        return tuple(sorted(self.items, key=lambda item: item.value, reverse=self.direction == "descending"))

    @property
    def key(self) -> list[str]:
        return [item.id for item in self.right]

    @property
    def answer_text(self) -> str:
        """What is right, as it would be answered."""
        return ", ".join(self.key)

    @property
    def key_text(self) -> str:
        """What is right, as a person reads it."""
        shown = [
            item.text.striptags() + (f" ({scaled(item.value, self.unit)})" if self.unit else "") for item in self.right
        ]
        return ", ".join(shown)

    def said(self, text: str) -> str:
        """An answer as a person reads it."""
        placed = self.placed(text)
        return text if placed is None else ", ".join(item.text.striptags() for item in placed)

    def placed(self, text: str) -> list[OrderItem] | None:
        """The items in the order given; None where each is not named exactly once."""
        by_id = {item.id: item for item in self.items}
        given = read_ids(text)
        return None if incomplete(given, by_id, self.noun) else [by_id[each] for each in given]

    def beside(self, placed: Sequence[OrderItem]) -> list[OrderItem]:
        """The right order to hold beside one given: items that may change places stand where they were put."""
        right = list(self.right)
        for place, mine in enumerate(placed):
            for other, each in enumerate(right):
                is_free = each.text == mine.text and placed[other].text != each.text
                if right[place].text != mine.text and is_free and within(each.value, right[place].value, SAME):
                    right[place], right[other] = each, right[place]
        return right

    def too_early(self, text: str) -> OrderItem | None:
        """The first item that stands before one it should follow; None in a right order, or in none."""
        placed = self.placed(text)
        if placed is None:
            return None
        values = self._values(placed)
        for place, (item, value) in enumerate(zip(placed, values, strict=True)):
            if not all(self._may_precede(value, after) for after in values[place + 1 :]):
                return item
        return None

    def filled(self, text: str) -> dict[str, str]:
        """The place given to each item, counted from 1, for the fields of a form."""
        return {item.id: str(place) for place, item in enumerate(self.placed(text) or (), 1)}

    def grade(self, text: str) -> Grade:
        """What an answer is worth."""
        placed = self.placed(text)
        if placed is None:
            return invalid(incomplete(read_ids(text), [item.id for item in self.items], self.noun) or "")
        values = self._values(placed)
        pairs = list(combinations(values, 2))
        standing = sum(self._may_precede(before, after) for before, after in pairs)
        if standing == len(pairs):
            return Grade("correct", 1.0, "")
        said = self.message or f"{self._in_place(placed)}; {standing} of {len(pairs)} pairs stand the right way round."
        return Grade("wrong", round(max(0.0, 2 * standing / len(pairs) - 1), 4), said)

    def _may_precede(self, before: float, after: float) -> bool:
        if within(before, after, SAME):
            return True
        return (before < after) == (self.direction == "ascending")

    def _values(self, placed: Sequence[OrderItem]) -> list[float]:
        """The value at each place, where items that read the same share theirs: the first placed has the first."""
        by_text: dict[Markup, list[float]] = defaultdict(list)
        for item in self.right:
            by_text[item.text].append(item.value)
        left = {text: iter(values) for text, values in by_text.items()}
        return [next(left[item.text]) for item in placed]

    def _in_place(self, placed: Sequence[OrderItem]) -> str:
        right = sum(mine.text == own.text for mine, own in zip(placed, self.beside(placed), strict=True))
        count, where = capital(number_in_words(right)), "is in its place" if right < 2 else "are in their place"
        return f"{count} of {len(placed)} {self.noun}s {where}"
