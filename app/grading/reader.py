"""The grammar of quantities: numbers as people write them, units, products, sums. Bounded in depth and in time.

sum     = product, { ("+" | "-") product | smaller product }       2 days 3 h
product = factor, { ("*" | "/") factor }                           56*2 GB, 14 GB / 25 GB/s
factor  = ["-"], ( number | [ root ] "(" sum ")" | "@" digits ), [ units ]  @0: a quantity known to the caller
root    = "sqrt" | "√"                                             sqrt(2 * 120 s * 50 h): a time
units   = unit, { "/" unit }                                       GB/s, tokens/s
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from app.units import BYTES, MAGNITUDES, NONE, UNITS, Dimension, Unit, combine

MAX_DEPTH = 20

_NUMBER = re.compile(
    r"(?:\d{1,3}(?: \d{3})+(?!\d)(?:[.,]\d+)?|\d[\d,.'’_]*|\.\d+)(?:[eE][+\-−]?\d{1,3})?"  # the first: 1 120 000
)
_GROUPED = r"\d{1,3}(?P<mark>[,.])(?:\d{2,3}(?P=mark))*\d{3}"  # two digits between marks: lakhs
_DECIMAL = re.compile(rf"(\d*|{_GROUPED})(?:(?!(?P=mark))[,.](\d+))?")
_POWER = re.compile(r"(?:[×x*·⋅]\s*)?10\s*(?:\^|\*\*)\s*([+\-−]?\d{1,3})|(?:[×x*·⋅]\s*)?10([⁺⁻]?[⁰¹²³⁴⁵⁶⁷⁸⁹]{1,3})")
_WORD = re.compile(r"[A-Za-zµμ%×]+(?:-[a-z]+)?")
_SUPERSCRIPT = str.maketrans("⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "+-0123456789")
_KNOWN = re.compile(r"@(\d{1,3})")
_ROOT = re.compile(r"(?:sqrt|√) ?(?=\()", re.IGNORECASE)


class Unreadable(ValueError):
    """The text is no quantity; the message says why and what would be read."""


@dataclass(frozen=True)
class Quantity:
    """A value in base units. `unit_given` is False when the text was a bare number, `magnitude` True for one as 7B.

    `taken_as` says how what was not quite a unit was understood, where that is not evident.
    """

    value: float
    dimension: Dimension
    unit_given: bool
    magnitude: bool = False
    taken_as: str = ""
    counted: str = ""  # what is counted, as “GPUs”: the last such word, which has no unit


class Reader:
    """Recursive descent over one short text: terms, factors, numbers, units."""

    def __init__(self, text: str, wanted: Dimension | None, example: str, known: Sequence[Quantity] = ()) -> None:
        self.text = text
        self.wanted = wanted
        self.example = example
        self.known = known
        self.at = 0
        self.unit_given = False
        self.magnitude = False
        self.taken_as = ""
        self.counted = ""

    def read(self) -> Quantity:
        value, unit = self._sum(0)
        self._skip()
        if self.at < len(self.text):
            rest = self.text[self.at : self.at + 30]
            before = self.text[max(0, self.at - 30) : self.at].strip()
            said = f"“{before}” was read, but not “{rest}” behind it"
            raise Unreadable(f"{said}. Write one number with its unit, such as {self.example}.")
        return Quantity(
            value * unit.factor, unit.dimension, self.unit_given, self.magnitude, self.taken_as, self.counted
        )

    def _skip(self) -> None:
        while self.at < len(self.text) and self.text[self.at] == " ":
            self.at += 1

    def _peek(self) -> str:
        self._skip()
        return self.text[self.at] if self.at < len(self.text) else ""

    def _sum(self, depth: int) -> tuple[float, Unit]:
        """Terms with signs between them; "2 days 3 h" is a sum without a sign. One unit may serve all: 14 + 14 GB."""
        terms = [(1.0, *self._product(depth))]
        while True:
            sign = self._peek()
            if sign and sign in "+-−":
                self.at += 1
                terms.append((-1.0 if sign in "-−" else 1.0, *self._product(depth)))
            elif sign and (sign.isdigit() or sign == ".") and terms[-1][2].dimension != NONE:
                terms.append((1.0, *self._smaller(terms[-1][2], depth)))
            else:
                return self._added(terms)

    def _smaller(self, before: Unit, depth: int) -> tuple[float, Unit]:
        """What may follow without a sign: the same kind in a smaller unit, as hours after days. "112 GB 120 GB" is two
        answers."""
        value, unit = self._product(depth)
        if unit.dimension != before.dimension or unit.factor >= before.factor:
            raise Unreadable(f"That is more than one quantity. Write one, such as {self.example}.")
        return value, unit

    def _added(self, terms: list[tuple[float, float, Unit]]) -> tuple[float, Unit]:
        last = terms[-1][2]
        if last.dimension != NONE and all(unit == Unit(NONE, 1.0) for _, _, unit in terms[:-1]):
            return sum(sign * value for sign, value, _ in terms), last
        if len({unit.dimension for _, _, unit in terms}) > 1:
            raise Unreadable("Quantities of different kinds do not add up.")
        return sum(sign * value * unit.factor for sign, value, unit in terms), Unit(last.dimension, 1.0)

    def _product(self, depth: int) -> tuple[float, Unit]:
        value, unit = self._factor(depth)
        while (operator := self._peek()) and operator in "*×·⋅/÷x":
            start = self.at
            self.at += 1
            follows = self._peek()
            is_root = _ROOT.match(self.text, self.at) is not None
            if not (follows.isdigit() or follows in ".(-−+@" or is_root) or not follows:
                self.at = start
                break
            other, other_unit = self._factor(depth)
            sign = -1 if operator in "/÷" else 1
            value = value * other if sign > 0 else value / other
            shared = unit == Unit(NONE, 1.0) and other_unit.dimension != NONE
            unit = other_unit if shared else combine(unit, other_unit, sign)  # 112/8 GB is 14 GB
        return value, unit

    def _factor(self, depth: int) -> tuple[float, Unit]:
        if depth > MAX_DEPTH:
            raise Unreadable("Too many brackets.")
        head = self._peek()
        if head and head in "-−+":
            self.at += 1
            value, unit = self._factor(depth + 1)
            return (-value if head in "-−" else value), unit
        match = _KNOWN.match(self.text, self.at) if head == "@" else None
        if match and int(match.group(1)) < len(self.known):
            self.at = match.end()
            quantity = self.known[int(match.group(1))]
            self.unit_given |= quantity.unit_given
            return quantity.value, combine(Unit(quantity.dimension, 1.0), self._units(), 1)
        root = _ROOT.match(self.text, self.at)
        if root:
            self.at = root.end()
            return self._root(*self._bracket(depth))
        if head == "(":
            value, unit = self._bracket(depth)
            return value, combine(unit, self._units(), 1)
        value = self._number()
        return value, self._units()

    def _bracket(self, depth: int) -> tuple[float, Unit]:
        self.at += 1
        value, unit = self._sum(depth + 1)
        if self._peek() != ")":
            raise Unreadable("A bracket is not closed.")
        self.at += 1
        return value, unit

    def _root(self, value: float, unit: Unit) -> tuple[float, Unit]:
        """The square root of a quantity whose units come in pairs."""
        if value < 0:
            raise Unreadable("There is no root of a negative number.")
        if any(exponent % 2 for exponent in unit.dimension):
            raise Unreadable("The units under that root do not come in pairs, so its root has none.")
        bytes_, seconds, flop, tokens = (exponent // 2 for exponent in unit.dimension)
        return (value * unit.factor) ** 0.5, Unit((bytes_, seconds, flop, tokens), 1.0)

    def _number(self) -> float:
        power = _POWER.match(self.text, self.at)
        if power:  # 10^11 on its own
            self.at = power.end()
            return _ten_to(power)
        match = _NUMBER.match(self.text, self.at)
        if match is None:
            rest = self.text[self.at : self.at + 30]
            raise Unreadable(f"“{rest}” is not a number. Write a number with its unit, such as {self.example}.")
        self.at = match.end()
        value = _number(match.group())
        self._skip()
        power = _POWER.match(self.text, self.at)
        if power and power.group()[0] != "1":
            self.at = power.end()
            value *= _ten_to(power)
        return value

    def _units(self) -> Unit:
        """A unit, a magnitude letter, or nothing; units may follow a slash: GB/s, tokens/s."""
        unit = self._unit()
        while unit is not None and self._peek() == "/":
            match = _WORD.match(self.text, self._next())
            if match is None or match.group() not in UNITS:
                break
            self.at = match.end()
            unit = combine(unit, UNITS[match.group()], -1)
        return unit or Unit(NONE, 1.0)

    def _next(self) -> int:
        at = self.at + 1
        while at < len(self.text) and self.text[at] == " ":
            at += 1
        return at

    def _unit(self) -> Unit | None:
        self._skip()
        match = _WORD.match(self.text, self.at)
        if match is None or (match.group() in "×x" and match.end() < len(self.text)):
            return None
        word = match.group()
        if word in MAGNITUDES and (word not in UNITS or (self.wanted is not None and self.wanted[0] == 0)):
            self.at = match.end()
            self.magnitude = True
            following = self._unit()
            return combine(Unit(NONE, MAGNITUDES[word]), following or Unit(NONE, 1.0), 1)
        known = UNITS.get(word) or UNITS.get(word.lower() if len(word) > 3 else word) or self._lower_case(word)
        if known is None:
            raise Unreadable(self._unknown(word))
        self.at = match.end()
        self.unit_given = True
        if known == Unit(NONE, 1.0):
            self.counted = word
        return known

    def _lower_case(self, word: str) -> Unit | None:
        """`gb` for GB where bytes are asked for and no speed: memory is not counted in bits."""
        if word[-1:] != "b" or self.wanted != BYTES:
            return None
        unit = next((each for each in (f"{word[:-1]}B", f"{word[:-1].upper()}B") if each in UNITS), None)
        if unit is None:
            return None
        self.taken_as = f"“{word}” was read as {unit}."
        return UNITS[unit]

    def _unknown(self, word: str) -> str:
        if word[-1:] == "b" and (both := [f"{word[:-1].upper()}{end}" for end in "bB"]) and both[0] in UNITS:
            return f"Are “{word}” bits or bytes? Write {both[0]} or {both[1]}."
        return f"“{word}” is not a unit known here. Write it such as {self.example}."


def _ten_to(match: re.Match[str]) -> float:
    exponent = match.group(1) or match.group(2).translate(_SUPERSCRIPT)
    return 10.0 ** int(exponent.replace("−", "-"))


def _number(text: str) -> float:
    """A number with thousands separators or a decimal comma: 1,120 · 1.120,5 · 38,5 · 1 120. Raises Unreadable."""
    mantissa, exponent = re.fullmatch(r"([^eE]*)(?:[eE](.*))?", text).groups()  # type: ignore[union-attr]
    plain = re.sub(r"['’_ ]", "", mantissa).rstrip(".,")
    match = _DECIMAL.fullmatch(plain)
    if _is_grouped(plain):
        whole, decimals = plain, ""
    elif match:
        whole, decimals = match.group(1), match.group(3) or ""
    else:
        raise Unreadable(f"“{text}” is not a number. Write it such as 1,120 or 1.5.")
    return float(f"{re.sub('[,.]', '', whole) or '0'}.{decimals or '0'}e{int((exponent or '0').replace('−', '-'))}")


def _is_grouped(plain: str) -> bool:
    """Whether all marks in it separate thousands. A single point is a decimal point, and so is the comma in 0,125."""
    points = plain.count(".")
    return bool(re.fullmatch(_GROUPED, plain)) and (points > 1 or (points == 0 and not plain.startswith("0")))
