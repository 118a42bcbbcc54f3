"""The level a candidate expects, said before the debrief, beside the one it became. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.grading import levels
from app.words import listed, number_in_words, often

NOT_SAID = ""  # who would rather not say


@dataclass(frozen=True)
class Expectation:
    """What was expected and what it became. `above` is how many levels too high that was; negative: too low."""

    expected: levels.Level
    level: levels.Level

    @property
    def above(self) -> int:
        return levels.NAMES.index(self.level) - levels.NAMES.index(self.expected)

    @property
    def says(self) -> str:
        """The two beside each other, in words."""
        if not self.above:
            return f"You expected {self.expected}, and so it is"
        return f"You expected {self.expected}, {_steps(abs(self.above))} too {'high' if self.above > 0 else 'low'}"


def compare(expected: str | None, level: levels.Level | None) -> Expectation | None:
    """None where nothing was expected, or there is no level yet."""
    said = next((each for each in levels.NAMES if each == expected), None)
    return Expectation(said, level) if said and level else None


def over_sittings(expectations: Sequence[Expectation]) -> str:
    """How good somebody's expectations have been; nothing before there are two."""
    if len(expectations) < 2:
        return ""
    above = sum(each.above > 0 for each in expectations)
    below = sum(each.above < 0 for each in expectations)
    kinds = (
        ("the right level", len(expectations) - above - below),
        ("too high a one", above),
        ("too low a one", below),
    )
    expected = listed([f"{name} {often(count)}" for name, count in kinds if count])
    return f"Over {number_in_words(len(expectations))} sittings you expected {expected}."


def _steps(count: int) -> str:
    return "one level" if count == 1 else f"{count} levels"
