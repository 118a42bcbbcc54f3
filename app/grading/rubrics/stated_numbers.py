"""Numbers and formulas of a sentence: what each number says with the words behind it, and formulas written one way."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from math import isnan

from app.grading.quantities import Unreadable, read_quantity
from app.grading.rubrics.numerals import numerals
from app.units import UNITS

MOST_NUMBERS = 60  # in one sentence
LONGEST_NUMBER = 30

_NUMBER_AND_UNIT = re.compile(
    r"(?:\s*[*x×]?\s*10\s*\^?\s*-?\d{1,3}(?!\d))?\s*-?\s*(?:%|[a-zµ]+(?:/[a-z]+)?)?(?:[ -][a-z]+(?:/[a-z]+)?)?",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Number:
    """A number in a sentence: where among the tokens, and its text with up to two words behind it, longest first."""

    at: int
    texts: tuple[str, ...]
    has_unit: bool
    denied: bool
    is_set: bool = False  # tp = 8: the value of a letter, and no quantity with its unit left out

    def is_a(self, dimension: str) -> bool:
        """Whether its unit is one of `dimension`."""
        return any(not isnan(_value(text, dimension)) for text in self.texts[:-1])

    def matches(self, value: float, dimension: str, scale: float, tolerance: float) -> bool:
        """Whether it is `value` in base units, in any notation; a bare number counts in units of `scale` as well."""
        for text in self.texts[:-1] if self.has_unit else self.texts:
            read_as = (dimension, "count") if dimension in _COUNTABLE else (dimension,)
            if any(_near(_value(text, each), value, tolerance) for each in read_as):
                return True
        is_bare = not self.has_unit and not self.is_set
        return is_bare and _near(_value(self.texts[-1], "count") * scale, value, tolerance)


_COUNTABLE = ("tokens", "flop", "count")  # "1.8T" says enough where tokens are meant


@lru_cache(maxsize=20_000)
def _value(text: str, dimension: str) -> float:
    """What a text says in `dimension`; not a number where it says nothing."""
    try:
        return read_quantity(text, dimension).value
    except Unreadable:
        return float("nan")


def _near(value: float, wanted: float, tolerance: float) -> bool:
    return abs(value - wanted) <= tolerance * abs(wanted)


def numbers_in(text: str, raw: list[tuple[str, int]], denied: list[bool]) -> tuple[Number, ...]:
    """The numbers of a sentence in lower case; `raw` are its tokens with their places, of which some are `denied`."""
    starts = {start: index for index, (_, start) in enumerate(raw)}
    found = []
    for start, end in numerals(text)[:MOST_NUMBERS]:
        index = starts.get(start)
        if index is not None and end - start <= LONGEST_NUMBER:
            texts = _candidates(text, start, end)
            found.append(Number(index, texts, len(texts) > 1 and _has_unit(texts), denied[index], _is_set(raw, index)))
    return tuple(found)


_LETTERS_WITH_VALUES = frozenset({"tp", "pp", "dp", "cp", "ep", "k", "m"})


def _is_set(raw: list[tuple[str, int]], index: int) -> bool:
    return index > 1 and raw[index - 1][0] == "=" and raw[index - 2][0] in _LETTERS_WITH_VALUES


def _candidates(text: str, start: int, end: int) -> tuple[str, ...]:
    behind = _NUMBER_AND_UNIT.match(text, end)
    reach = behind.end() if behind else end
    whole = " ".join(text[start:reach].replace("-", " ").split())
    words = whole[:80].split(" ")
    found = [_cased(" ".join(words[:count])) for count in range(len(words), 0, -1)]
    return tuple(dict.fromkeys([*found, text[start:end]]))


# The text is in lower case by now. In running text a small letter behind a number is no bit and no millisecond.
_CASES = {
    "gb": "GB",
    "tb": "TB",
    "mb": "MB",
    "kb": "kB",
    "gib": "GiB",
    "tib": "TiB",
    "mib": "MiB",
    "g": "GB",
    "b": "B",
    "t": "T",
    "m": "M",
    "p": "P",
    "tflops": "TFLOPs",
    "gb/s": "GB/s",
    "tb/s": "TB/s",
    "gbps": "Gbps",
    "gbit/s": "Gbps",
    "gbit": "Gbit",
    "mbit": "Mbit",
    "tbit": "Tbit",
}
_ATTACHED = re.compile(r"^(\d[\d.,]*(?:e[+-]?\d+)?)\s*([a-zA-Zµ%/]+)(.*)$")


def _cased(text: str) -> str:
    match = _ATTACHED.match(text)
    if not match:
        return text
    return f"{match.group(1)} {_CASES.get(match.group(2), match.group(2))}{match.group(3)}"


_MAGNITUDES = frozenset({"million", "billion", "trillion", "millions", "billions", "trillions"})


def _has_unit(texts: tuple[str, ...]) -> bool:
    match = _ATTACHED.match(texts[0])
    if match is None:
        return False
    word = match.group(2).split()[0] if match.group(2) else ""
    if word in _MAGNITUDES:
        return True
    return _CASES.get(word, word) in UNITS or word.rstrip("s") in UNITS or word in {"%", "GB", "GiB", "TB", "MB"}


_FORMULA_WORDS = (
    (re.compile(r"\b(?:the )?(?:world[ _]?size|number of (?:gpus|ranks|workers|stages)|ngpus)\b"), "n"),
    (re.compile(r"\s*(?:\bmultiplied by\b|\btimes\b|[*·×]|(?<=\d) ?x ?(?=\d))\s*"), ""),
    (re.compile(r"\b(?:divided by|over)\b"), "/"),
    (re.compile(r"\bminus\b"), "-"),
    (re.compile(r"\bplus\b"), "+"),
    (re.compile(r"\b(?:the )?(?:square )?root(?: of)?\b|\bsqrt\b"), "√"),
    (re.compile(r"[()\[\]{}]|\bthe\b"), ""),
    (re.compile(r"\s*([-+/√^])\s*"), r"\1"),
    (re.compile(r"(?<=\b2)\s+(?=[a-zτδ][-+/])"), ""),
)


def formula_form(text: str) -> str:
    """Lower-case text with formulas written one way: no brackets, no spaces round signs, words as signs."""
    for pattern, sign in _FORMULA_WORDS:
        text = pattern.sub(sign, text)
    return " ".join(text.split())
