"""Ranges of what the simulators are given. A NaN is in no range."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from labs.spec import SpecError, Violation


def check(*violations: Violation | None) -> None:
    """Raise one SpecError with all that is not None."""
    found = [each for each in violations if each is not None]
    if found:
        raise SpecError(found)


def not_negative(field: str, value: float) -> Violation | None:
    if 0 <= value < inf:
        return None
    return Violation(field, value, f"{value:g} is out of range.", "0 or more, finite")


def positive(field: str, value: float) -> Violation | None:
    if 0 < value < inf:
        return None
    return Violation(field, value, f"{value:g} is out of range.", "more than 0, finite")


def at_least(field: str, value: int, least: int) -> Violation | None:
    return None if value >= least else Violation(field, value, f"{value} is too few.", f"{least} or more")


def counted_as(field: str, values: Sequence[object], count: int, of: str) -> Violation | None:
    """Whether there is a value for each of `count` things called `of`."""
    if len(values) == count:
        return None
    return Violation(field, list(values), f"These are {len(values)} values for {count} {of}.", f"{count} values")
