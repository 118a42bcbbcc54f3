"""Reading a quantity a person typed: "112 GB", "104.3GiB", "1.12·10^11 bytes", "~56*2 GB", "112/8 GB", "2 days 3 h".

A bounded grammar of our own: at most 200 characters, no powers but of ten, no names, no nesting beyond 20. General
unit libraries read "112 GB" as dimensionless or "Gb" as gilbert, and evaluate what was typed.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from math import isfinite

from app.grading.reader import Quantity, Reader, Unreadable
from app.units import COUNTED, DIMENSIONS, EXAMPLES, NAMES, NONE, TOKENS, UNITS, Dimension

__all__ = ["Quantity", "Unreadable", "evaluate_quantity", "must_count", "read_quantity"]

MAX_LENGTH = 200
LARGEST = 1e30

_SPACE = re.compile(r"\s+")
_ABOUT = re.compile(r"^(?:[~≈≅=]|about|approximately|approx\.?|roughly|ca\.?|circa)\s*", re.IGNORECASE)
_PER = re.compile(r"(?<=[A-Za-z%µμ]) per (?=[A-Za-z])")
_SUM_IN_WORDS = re.compile(r"(?<=[a-z])(?:,| and|, and) (?=\d)")
_SEVERAL = re.compile(r"\s*(?:,\s|;|\bor\b|\band\b|\bto\b|…|\.\.+|–|—|(?<=[\dA-Za-z%])\s?-\s?(?=\d))\s*")
# Behind these stands what something comes to: 2 in flight, so 24 GB · 16 B × 70e9 = 1120 GB.
_SO = re.compile(
    r"\s*(?:,?\s+(?:and )?(?:so|thus|hence|therefore|which (?:is|makes|gives)|that (?:is|makes))\b|=>?|→|⇒)\s*"
)
_ONE_COUNT = re.compile(r"[~≈]?\s*[\d.,'’ ]+\s*[A-Za-z-]+\s*\.?")
_JOINED_BY_MINUS = re.compile(r"[\dA-Za-z%]\s?-\s?\d")


def read_quantity(text: str, expected: str, asked_unit: str | None = None) -> Quantity:
    """The quantity in `text`, where `expected` (a key of DIMENSIONS) decides between readings such as "7B".

    A bare number is one of `asked_unit`, where a question asks “how many GB”, and `taken_as` says so. Raises
    Unreadable when it cannot be parsed, has no unit where one matters, or another dimension.
    """
    example = EXAMPLES[expected]
    stripped = _result(_visible(text, example))
    joined = _SUM_IN_WORDS.sub(" ", stripped)  # 2 days and 3 h
    if joined == stripped or not _reads(joined, DIMENSIONS[expected], example):
        _refuse_several(stripped, DIMENSIONS[expected], example)
        joined = stripped
    found = _read_for(joined, DIMENSIONS[expected], example)
    if found.dimension == NONE and found.magnitude and DIMENSIONS[expected] == TOKENS:
        return Quantity(found.value, TOKENS, True, True)  # 1.4T of them: nothing else can be meant
    if asked_unit and found.dimension == NONE and not found.unit_given and not found.magnitude:
        factor = UNITS[asked_unit].factor
        said = f"A bare number was taken as {asked_unit}."
        return Quantity(found.value * factor, UNITS[asked_unit].dimension, True, taken_as=said)
    _check_dimension(found, expected, example)
    return found


def must_count(text: str, unit: str) -> None:
    """Raises Unreadable for a count of other things than `unit` names, as sequences where GPUs are asked for."""
    asked = COUNTED.get(unit)
    if asked is None or not _ONE_COUNT.fullmatch(_result(_visible(text, EXAMPLES["count"]))):
        return
    counted = read_quantity(text, "count").counted
    if counted and COUNTED.get(counted, asked) != asked:
        raise Unreadable(f"That counts {counted}; this asks for {unit}. Write how many {unit}.")


def _result(text: str) -> str:
    """What stands behind the last “so” or “=”, where something does: what was worked out before it is no answer."""
    pieces = _SO.split(text)
    return pieces[-1] if len(pieces) > 1 and pieces[-1] else text


def evaluate_quantity(text: str, known: Sequence[Quantity] = (), wanted: Dimension | None = None) -> Quantity:
    """Whatever quantity `text` is, of any dimension; `@0` in it is the first of `known`. Raises Unreadable.

    `wanted` only decides between readings such as "7B".
    """
    example = "13e9 × 16 B"
    return _finite(_visible(text, example), wanted, example, known)


def _visible(text: str, example: str) -> str:
    """The text without what cannot be seen: direction marks, zero-width spaces, double spaces, "about"."""
    if len(text) > MAX_LENGTH:
        raise Unreadable(f"That is {len(text)} characters; a quantity such as {example} is enough.")
    visible = text if text.isascii() else "".join(c for c in text if unicodedata.category(c) != "Cf")
    stripped = _PER.sub("/", _ABOUT.sub("", _SPACE.sub(" ", visible).strip()).strip())
    if not stripped.isprintable():
        raise Unreadable(f"There are characters in it that cannot be shown. Write it such as {example}.")
    if not stripped:
        raise Unreadable(f"There is nothing to read. Write a number with its unit, such as {example}.")
    return stripped


def _finite(text: str, wanted: Dimension | None, example: str, known: Sequence[Quantity] = ()) -> Quantity:
    try:
        found = Reader(text, wanted, example, known).read()
    except (OverflowError, ZeroDivisionError):
        raise Unreadable(f"“{text}” has no finite value.") from None
    if not isfinite(found.value) or abs(found.value) > LARGEST:
        raise Unreadable(f"“{text}” is too large to be meant.")
    if 0 < abs(found.value) < 1 / LARGEST:
        raise Unreadable(f"“{text}” is too small to be meant.")
    return found


def _read_for(text: str, wanted: Dimension, example: str) -> Quantity:
    """The quantity in `text`; a lone B in it is a billion unless only bytes make it what is wanted: 2 B/(50 GB/s)."""
    found = _finite(text, wanted, example)
    if found.dimension == wanted or not found.magnitude:
        return found
    of_bytes = _finite(text, None, example)
    return of_bytes if of_bytes.dimension == wanted else found


def _reads(text: str, wanted: Dimension, example: str) -> bool:
    try:
        Reader(text, wanted, example).read()
    except (Unreadable, OverflowError, ZeroDivisionError):
        return False
    return True


def _refuse_several(text: str, wanted: Dimension, example: str) -> None:
    """Refuse two answers, "112 GB or 120 GB", and ranges, "70-72 GB", naming what was understood."""
    if text[0] in "[{":
        raise Unreadable(f"That is a list; one number is asked for, such as {example}.")
    pieces = _SEVERAL.split(text)
    if not 2 <= len(pieces) <= 4 or not all(pieces):
        return
    if not all(_reads(piece, wanted, example) for piece in pieces):
        return  # not several quantities: the grammar says what is wrong
    if _JOINED_BY_MINUS.search(text) and Reader(text, wanted, example).read().value >= 0:
        return  # a difference: 14 - 2 GB
    raise Unreadable(f"That is more than one answer: {' and '.join(pieces)}. Write one.")


def _check_dimension(quantity: Quantity, expected: str, example: str) -> None:
    wanted = DIMENSIONS[expected]
    if quantity.dimension != wanted:
        if not quantity.unit_given:
            read = f"{quantity.value:.6g}".replace("e+", "e")
            raise Unreadable(f"The unit is missing: it reads as {read}. Write the unit behind it, such as {example}.")
        named = NAMES.get(quantity.dimension, "something else")
        raise Unreadable(f"That is {named}; this asks for {NAMES[wanted]}, such as {example}.")
    if expected == "fraction" and not quantity.unit_given and abs(quantity.value) >= 2:
        raise Unreadable(
            f"Is that {quantity.value:g} % or {quantity.value:g} times? Write the % sign, or a fraction such as 0.18."
        )
