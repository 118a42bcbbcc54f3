"""The scratch pad's calculator: quantities with units, registered formulas by name, `ans`, and `in GiB`. Pure.

What was typed is read by the grammar of answers, and formulas are called with inputs it read: nothing is evaluated.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import floor, log10

from app.grading.quantities import Quantity, Unreadable, evaluate_quantity
from app.theory.formulas import FORMULAS
from app.theory.formulas.registry import Formula, Input, Value, evaluate
from app.units import DIMENSIONS, NAMES, NONE, UNITS, Dimension, digits, factor_of
from labs.spec import SpecError

MAX_TEXT = 400
MAX_DEPTH = 5
MAX_CALLS = 8

_NAME = re.compile(r"[a-z][a-z0-9_]{2,}(?=\s*\()")
_ANS = re.compile(r"\bans\b", re.IGNORECASE)
_INTO = re.compile(r"^(.*\S)\s+(?:in|to|as)\s+(\S+)$", re.DOTALL)
_ARGUMENT = re.compile(r"\s*([a-z][a-z0-9_]*)\s*=\s*(.+?)\s*", re.DOTALL)

# The units a value of a dimension is read in most easily, the largest first; the last is for all that is smaller.
_SHOWN: Mapping[Dimension, tuple[str, ...]] = {
    DIMENSIONS["bytes"]: ("PB", "TB", "GB", "MB", "kB", "B"),
    DIMENSIONS["seconds"]: ("days", "h", "min", "s", "ms", "µs"),
    DIMENSIONS["bytes_per_second"]: ("TB/s", "GB/s", "MB/s", "B/s"),
    DIMENSIONS["flop_per_second"]: ("EFLOP/s", "PFLOP/s", "TFLOP/s", "FLOP/s"),
    DIMENSIONS["flop"]: ("FLOP",),
    DIMENSIONS["tokens"]: ("tokens",),
    DIMENSIONS["tokens_per_second"]: ("tokens/s",),
    NONE: ("",),
}
_BASE = ("B", "s", "FLOP", "tokens")


@dataclass(frozen=True)
class Result:
    """What a line came to: the value in base units, how it is written, and the formulas in it."""

    value: float
    dimension: Dimension
    text: str
    formulas: tuple[str, ...]


def calculate(text: str, ans: Quantity | None = None) -> Result:
    """The value of one line. Raises Unreadable, saying what could not be read."""
    if len(text) > MAX_TEXT:
        raise Unreadable(f"That is {len(text)} characters; up to {MAX_TEXT} are read.")
    if "@" in text:
        raise Unreadable("“@” is not understood here.")
    line, unit = _into(text.strip())
    pad = _Pad(ans)
    found = pad.value(line, 0)
    if unit is None:
        return Result(found.value, found.dimension, write(found.value, found.dimension), tuple(pad.formulas))
    if UNITS[unit].dimension != found.dimension:
        raise Unreadable(f"{_named(found.dimension).capitalize()} cannot be written in {unit}.")
    shown = f"{_digits(found.value / UNITS[unit].factor)} {unit}"
    return Result(found.value, found.dimension, shown, tuple(pad.formulas))


def names() -> Iterator[tuple[str, str]]:
    """The formulas that can be called, each with an example of how."""
    for formula in FORMULAS.by_name.values():
        needed = ", ".join(f"{each.name}=" for each in formula.inputs if each.default is None)
        yield f"{formula.name}({needed})", formula.title


def write(value: float, dimension: Dimension) -> str:
    """A value in the unit in which it is read most easily: 208 GB, 57.8 ms, 6.881·10^14 FLOP."""
    units = _SHOWN.get(dimension)
    if units is not None:
        unit = next((unit for unit in units if abs(value) >= factor_of(unit)), units[-1])
        return f"{_digits(value / factor_of(unit))} {unit}".rstrip()
    powers = [f"{name}^{power}" if power != 1 else name for name, power in zip(_BASE, dimension, strict=True) if power]
    return f"{_digits(value)} {'·'.join(powers)}"


class _Pad:
    """One line under way: the quantities found in it so far, which the grammar sees as @0, @1, …"""

    def __init__(self, ans: Quantity | None) -> None:
        self.known: list[Quantity] = []
        self.ans = ans
        self.formulas: list[str] = []

    def value(self, text: str, depth: int, wanted: Dimension | None = None) -> Quantity:
        if depth > MAX_DEPTH:
            raise Unreadable("Formulas in formulas are read five deep.")
        plain = ""
        while match := _NAME.search(text):
            end = _closing(text, text.index("(", match.end()))
            quantity = self._called(match.group(), text[text.index("(", match.end()) + 1 : end], depth)
            plain += text[: match.start()] + self._kept(quantity)
            text = text[end + 1 :]
        return evaluate_quantity(_ANS.sub(lambda _: self._answer(), plain + text), self.known, wanted)

    def _kept(self, quantity: Quantity) -> str:
        self.known.append(quantity)
        return f"@{len(self.known) - 1}"

    def _answer(self) -> str:
        if self.ans is None:
            raise Unreadable("There is no last line yet for ans to stand for.")
        return self._kept(self.ans)

    def _called(self, name: str, arguments: str, depth: int) -> Quantity:
        formula = FORMULAS.by_name.get(name)
        if formula is None:
            raise Unreadable(f"There is no formula “{name}”. The reference lists them.")
        if len(self.formulas) >= MAX_CALLS:
            raise Unreadable(f"At most {MAX_CALLS} formulas are evaluated in a line.")
        self.formulas.append(name)
        given = {each: self._argument(formula, each, value, depth) for each, value in _pairs(arguments)}
        try:
            found = evaluate(formula, given)
        except SpecError as error:
            raise Unreadable(f"{name}: " + " ".join(str(each) for each in error.violations)) from None
        dimension = DIMENSIONS[formula.dimension]
        return Quantity(float(found.value), dimension, unit_given=dimension != NONE)

    def _argument(self, formula: Formula, name: str, text: str, depth: int) -> Value:
        source = next((each for each in formula.inputs if each.name == name), None)
        if source is None:
            accepted = ", ".join(each.name for each in formula.inputs)
            raise Unreadable(f"{formula.name} has no input “{name}”. It has {accepted}.")
        if source.choices:
            return text.strip("\"'“”")
        return self._number(source, self.value(text, depth + 1, DIMENSIONS[source.dimension]))

    @staticmethod
    def _number(source: Input, quantity: Quantity) -> float:
        """A bare number is in base units; another dimension than the input's is a mistake."""
        wanted = DIMENSIONS[source.dimension]
        if quantity.dimension not in (wanted, NONE):
            raise Unreadable(f"{source.name} takes {_named(wanted)}, not {_named(quantity.dimension)}.")
        return quantity.value


def _into(text: str) -> tuple[str, str | None]:
    """The line before "in GiB", and the unit."""
    match = _INTO.fullmatch(text)
    return (match.group(1), match.group(2)) if match and match.group(2) in UNITS else (text, None)


def _closing(text: str, opened: int) -> int:
    depth = 0
    for at in range(opened, len(text)):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if depth == 0:
            return at
    raise Unreadable("A bracket is not closed.")


def _pairs(arguments: str) -> Iterator[tuple[str, str]]:
    """Inputs by name: "stages=8, micro_batches=4*8". Commas within brackets do not separate."""
    depth, start = 0, 0
    pieces = []
    for at, char in enumerate(arguments):
        depth += {"(": 1, ")": -1}.get(char, 0)
        if depth == 0 and (char == ";" or (char == "," and re.match(r"\s*[a-z]\w*\s*=", arguments[at + 1 :]))):
            pieces.append(arguments[start:at])
            start = at + 1
    pieces.append(arguments[start:])
    for piece in pieces:
        match = _ARGUMENT.fullmatch(piece)
        if match is None and piece.strip():
            raise Unreadable(f"“{piece.strip()[:30]}” is no input. Name it, as in stages=8.")
        if match:
            yield match.group(1), match.group(2)


def _named(dimension: Dimension) -> str:
    return NAMES.get(dimension, "a quantity of another kind")


def _digits(value: float) -> str:
    """Six significant digits; beyond a million a power of ten, in the way answers may be typed."""
    if value and not 1e-4 <= abs(value) < 1e7:
        exponent = floor(log10(abs(value)))
        return f"{digits(value / 10.0**exponent, 5)}·10^{exponent}"
    return digits(value, 6)
