"""Sums worked out in an answer: "7 × 16 = 96 GB" is found and said to be 112."""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

NUMBER = r"\d[\d,]{0,20}(?:\.\d{1,20})?(?:e[+-]?\d{1,2})?"
_UNIT = r"(?:\s?(?:gib|tib|gb|tb|mb|kb|bytes?|b|k|m|t|s|ms|%)(?![a-z]))?"
_TERM = rf"[(\[]{{0,3}} ?{NUMBER}{_UNIT}(?: ?[)\]]){{0,3}}"
_SUM = re.compile(
    rf"(?<![\w.√^)\]/*+-])(?P<left>{_TERM}(?: ?[-+*/x] ?{_TERM}){{1,8}}) ?(?P<sign>=|≈|~=) ?~? ?(?P<right>{NUMBER})"
    rf"(?![\d.,]{{0,20}}\d)(?P<unit>{_UNIT})(?! ?[-+*/x^(] ?[\d(])",
)
_SIGNS = str.maketrans({"×": "*", "·": "*", "⋅": "*", "−": "-", "–": "-", "÷": "/"})
MOST_TEXT = 10_000  # characters that are searched for sums
LONGEST = 120  # characters of a sum: longer ones are text
TOLERANCE = {"=": 0.04, "≈": 0.12, "~=": 0.12}
CONVERTED = 0.012  # where a unit was changed on the way, the digits must fit better
STEPS = (1.0, 8.0, 1 / 8, 1.024, 1.024**2, 1.024**3, 1 / 1.024, 1 / 1.024**2, 1 / 1.024**3, 100.0, 3.6, 1 / 3.6)

_GOES_ON = ("*", "/", "+", "-", "^", "√", "x", "%")  # before a sum: it began earlier

_MIXED = re.compile(r"[-+].*[a-z%]\s*[*x/]")  # "2 + 2 + 12 bytes × 70": who writes so means the sum first
_OPERATIONS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


@dataclass(frozen=True)
class WrongSum:
    """A sum as it is written, and what it comes to."""

    written: str
    comes_to: float

    @property
    def says(self) -> str:
        """The correction in words."""
        return f"The sum “{self.written}” does not come out: it makes {self.comes_to:,.4g}."


def wrong_sums(text: str) -> Iterator[WrongSum]:
    """The sums in `text` that do not come out. Units may change by thousands, by bits or between hours and seconds."""
    plain = text[:MOST_TEXT].translate(_SIGNS)
    if "=" not in plain and "≈" not in plain:
        return
    for found in _SUM.finditer(plain.lower()):
        before = plain[max(0, found.start() - LONGEST) : found.start()].rstrip()
        is_part = before[-1:] in _GOES_ON or before.count("(") > before.count(")")
        if len(found.group()) > LONGEST or is_part or _MIXED.search(found["left"]):
            continue
        value, claimed = _value(found["left"]), _number(found["right"])
        if value is None or not claimed or value <= 0:
            continue
        allowed = TOLERANCE[found["sign"]] + _rounding(found["right"])
        last = _value(re.split(r"[-+]", found["left"])[-1])  # "26 + 156/8 = 19.5" works out its last term
        if not _agree(value, claimed, allowed) and not (last and last > 0 and _agree(last, claimed, allowed)):
            yield WrongSum(" ".join(text[found.start() : found.end()].split()), value)


def _number(text: str) -> float:
    return float(text.replace(",", ""))


def _rounding(digits: str) -> float:
    """Half a unit of the last place that is written, relative: 50 may be 45 to 55, and 87.5 is what it is."""
    bare = digits.partition("e")[0].replace(",", "").replace(".", "").lstrip("0").rstrip("0")
    return 0.5 / max(1, int(bare or "1"))


def _value(left: str) -> float | None:
    if re.search(r"\d\s*[kmtb](?![a-z])", left) and "/" not in left and "*" not in left and "x" not in left:
        return None  # 26b + 3 adds unlike things
    body = re.sub(rf"({NUMBER})({_UNIT})", lambda each: _plain(each.group(1)), left)
    body = body.replace("x", "*").replace("[", "(").replace("]", ")")
    try:
        return _evaluate(ast.parse(body.strip(), mode="eval").body)
    except (SyntaxError, ValueError, ZeroDivisionError, OverflowError, RecursionError):
        return None


def _plain(number: str) -> str:
    return repr(_number(number))


def _evaluate(node: ast.expr) -> float:
    if isinstance(node, ast.Constant) and isinstance(node.value, float):
        return node.value
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
        return _OPERATIONS[type(node.op)](_evaluate(node.left), _evaluate(node.right))
    raise ValueError("no sum")


def _agree(value: float, claimed: float, tolerance: float) -> bool:
    """Equal, or equal but for the unit: thousands, bits, binary prefixes, per cent, hours."""
    for step in STEPS:
        ratio = value * step / claimed
        power = round(math.log10(ratio) / 3)
        if abs(ratio / 10 ** (3 * power) - 1) <= (tolerance if step in (1.0, 100.0) else min(tolerance, CONVERTED)):
            return True
    return False
