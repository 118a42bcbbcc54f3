"""Drawing primitives: boxes, labels, lines, arrows and axes as SVG whose colours and type come from the style sheet.

Nothing here carries a colour or a style attribute: classes name what a mark is. A canvas has its natural width in CSS
pixels; text is 12 px high at that width.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, floor, hypot, log10

from markupsafe import Markup

from app.units import digits

NARROW = 352.0  # fits a phone of 390 px; a wider picture scrolls in its own box there
LINE = 16.0  # from one line of text to the next
Point = tuple[float, float]

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_WIDE, _NARROW = frozenset("mwMW%@—→×Σ"), frozenset("iljtfrI.,:;'’|!()[]/ \u00a0")


@dataclass(frozen=True)
class Picture:
    """What is drawn, and the same in words and numbers. `key` pairs a class with what it stands for."""

    width: float
    height: float
    body: Markup
    says: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    key: tuple[tuple[str, str], ...] = ()


class Canvas:
    """Collects marks; `kind` is one or more class names."""

    def __init__(self, width: float = NARROW) -> None:
        self.width = width
        self.marks: list[Markup] = []

    def box(self, x: float, y: float, width: float, height: float, kind: str, radius: float = 0) -> None:
        corner = Markup(' rx="{}"').format(number(radius)) if radius else ""
        self._add(
            '<rect class="{}" x="{}" y="{}" width="{}" height="{}"{}/>',
            kind,
            number(x),
            number(y),
            number(width),
            number(height),
            corner,
        )

    def circle(self, x: float, y: float, radius: float, kind: str) -> None:
        self._add('<circle class="{}" cx="{}" cy="{}" r="{}"/>', kind, number(x), number(y), number(radius))

    def label(self, x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> None:
        """Text on the baseline `y`; `anchor` is start, middle or end."""
        tone = Markup(' class="{}"').format(kind) if kind else ""
        self._add('<text{} x="{}" y="{}" text-anchor="{}">{}</text>', tone, number(x), number(y), anchor, text)

    def lines(self, x: float, y: float, texts: Sequence[str], kind: str = "", anchor: str = "start") -> None:
        """Lines of text below each other, the first on the baseline `y`."""
        for index, text in enumerate(texts):
            self.label(x, y + index * LINE, text, kind, anchor)

    def line(self, points: Sequence[Point], kind: str = "d-line") -> None:
        path = " ".join(f"{'L' if index else 'M'}{number(x)} {number(y)}" for index, (x, y) in enumerate(points))
        self._add('<path class="{}" d="{}"/>', kind, path)

    def arrow(self, points: Sequence[Point], kind: str = "d-line", head: float = 6) -> None:
        """A line with a head at its last point."""
        (x0, y0), (x, y) = points[-2:]
        far = hypot(x - x0, y - y0) or 1.0
        dx, dy = (x - x0) / far * head, (y - y0) / far * head
        self.line([*points[:-1], (x - dx, y - dy)], kind)
        corners = [(x, y), (x - dx - dy * 0.55, y - dy + dx * 0.55), (x - dx + dy * 0.55, y - dy - dx * 0.55)]
        path = " ".join(f"{number(a)},{number(b)}" for a, b in corners)
        self._add('<polygon class="d-head {}" points="{}"/>', kind, path)

    def hatched(self, x: float, y: float, width: float, height: float, gap: float = 5) -> None:
        """Idle time: an outline with diagonals, never filled."""
        self.box(x, y, width, height, "d-idle")
        parts = []
        for index in range(1, ceil((width + height) / gap)):
            c = index * gap  # on the diagonal, x and y inside the box add up to c
            left, top = max(0.0, c - height), max(0.0, c - width)
            parts.append(f"M{number(x + left)} {number(y + c - left)}L{number(x + c - top)} {number(y + top)}")
        self._add('<path class="d-hatch" d="{}"/>', "".join(parts))

    def _add(self, pattern: str, *values: object) -> None:
        self.marks.append(Markup(pattern).format(*values))  # noqa: S704 - patterns are written above, values escaped

    def picture(
        self,
        height: float,
        says: str,
        head: Iterable[str],
        rows: Iterable[Iterable[str]],
        key: Iterable[tuple[str, str]] = (),
    ) -> Picture:
        """Everything drawn so far, with its alternative."""
        table = tuple(tuple(row) for row in rows)
        return Picture(self.width, ceil(height), Markup("\n").join(self.marks), says, tuple(head), table, tuple(key))


def wrap_svg(picture: Picture, name: str, title: str) -> Markup:
    """The picture as an element of its own, named by `title` and described by what it says; ids begin with `name`."""
    return Markup(
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w} {h}" width="{w}" height="{h}" role="img" '
        'aria-labelledby="{name}-t {name}-d"><title id="{name}-t">{title}</title><desc id="{name}-d">{says}</desc>\n'
        "{body}\n</svg>"
    ).format(
        w=number(picture.width), h=number(picture.height), name=name, title=title, says=picture.says, body=picture.body
    )


def number(value: float) -> str:
    """A coordinate: two decimals at most."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def text_width(text: str) -> float:
    """About how wide 12 px text is; on the safe side."""
    return sum(10.5 if c in _WIDE else 4.2 if c in _NARROW else 8.2 if c.isupper() else 6.9 for c in text)


def wrapped(text: str, width: float) -> list[str]:
    """`text` broken at spaces into lines that fit `width`; a longer word has a line of its own."""
    lines: list[str] = []
    for word in text.split():
        if lines and text_width(f"{lines[-1]} {word}") <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def number_text(value: float, significant: int = 3) -> str:
    """A number for an axis or a table: 0.25, 512, 10⁹, 3.4 × 10³⁸."""
    if value == 0 or 1e-3 <= abs(value) < 1e5:
        return digits(value, max(significant, 4) if abs(value) >= 1000 else significant)
    exponent = floor(log10(abs(value)))
    mantissa = digits(value / 10.0**exponent, significant)
    if mantissa == "10":  # 9.999 rounds up
        mantissa, exponent = "1", exponent + 1
    return power_text(10, exponent) if mantissa == "1" else f"{mantissa}\u00a0×\u00a0{power_text(10, exponent)}"


def power_text(base: int, exponent: int) -> str:
    """10³, 2⁻²³."""
    return str(base) + str(exponent).translate(_SUPERSCRIPTS)


def nice_ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Round values, at most `most`, whose first and last enclose `low` to `high`; steps are 1, 2 or 5 times 10ⁿ."""
    rough = (high - low) / (most - 1) or abs(high) or 1.0
    power = 10.0 ** floor(log10(rough))
    for multiple in (1, 2, 5, 10, 20):
        step = multiple * power
        first, last = floor(low / step + 1e-9), ceil(high / step - 1e-9)
        if last - first < most:
            break
    return [index * step for index in range(first, max(last, first + 1) + 1)]


def round_around(low: float, high: float) -> tuple[float, float]:
    """The next 1, 2 or 5 times 10ⁿ below and above positive values."""
    powers = [10.0 ** floor(log10(each)) for each in (low, high)]
    below = max(m * powers[0] for m in (1, 2, 5) if m * powers[0] <= low * (1 + 1e-9))
    return below, min(m * powers[1] for m in (1, 2, 5, 10) if m * powers[1] >= high * (1 - 1e-9))


def log_ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Powers of ten between `low` and `high`, thinned; with fewer than three of them, 1, 2 and 5 times each."""
    first, last = floor(log10(low) + 1e-9), ceil(log10(high) - 1e-9)
    decades = [10.0**n for n in range(first, last + 1)]
    inside = [each for each in decades if low / 1.0001 <= each <= high * 1.0001]
    if len(inside) < 3:
        finer = [m * each for each in decades for m in (1, 2, 5)]
        inside = [each for each in finer if low / 1.0001 <= each <= high * 1.0001]
    return inside[:: ceil(len(inside) / most)] if inside else [low, high]


def spread(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Positions as near to `wanted` as leaves `gap` between any two, from `low` to `high`."""
    order = sorted(range(len(wanted)), key=lambda index: wanted[index])
    placed = [max(low, min(wanted[index], high)) for index in order]
    for left, right in pairwise(range(len(placed))):
        placed[right] = max(placed[right], placed[left] + gap)
    over = placed[-1] - high if placed else 0.0
    if over > 0:
        placed[-1] = high
        for right in range(len(placed) - 1, 0, -1):
            placed[right - 1] = min(placed[right - 1], placed[right] - gap)
    found = [0.0] * len(wanted)
    for position, index in zip(placed, order, strict=True):
        found[index] = position
    return found
