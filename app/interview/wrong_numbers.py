"""Numbers that were answered wrong, and words that say them again: what rests on one shows no strength. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from app.grading.rubrics.reading import read
from app.interview.rows import VERDICTS, Row
from app.reveal.number import SaidNumber
from app.units import SCALES

SAME = 0.02  # relative: as exact as somebody says a number again


def wrong_numbers(rows: Sequence[Row]) -> tuple[SaidNumber, ...]:
    """The numbers with a unit that stayed wrong."""
    return tuple(row.number for row in rows if row.number and row.number.unit and row.verdict == VERDICTS["wrong"])


def say_one(words: str, numbers: Sequence[SaidNumber]) -> bool:
    """Whether words say one of `numbers`, with its unit."""
    said = [number for sentence in read(words).sentences for number in sentence.numbers if number.has_unit]
    return any(number.matches(each.value, *SCALES[each.unit], SAME) for each in numbers for number in said)
