"""The axes and the grid of whatever is plotted over something."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor, log10

from app.content.diagrams.svg import (
    Canvas,
    Point,
    log_ticks,
    nice_ticks,
    number_text,
    power_text,
    round_around,
    text_width,
)

HEIGHT, TOP = 190.0, 26.0
_FLAT = 0.9  # a curve that stays above this share of its highest value would be a straight line over 0


@dataclass(frozen=True)
class Axis:
    """Where a value stands between `low` and `high`, and the round values to mark; `power` is divided out of them."""

    low: float
    high: float
    log: bool
    ticks: tuple[float, ...]
    power: int = 0

    def share(self, value: float) -> float:
        if self.log:
            return (log10(value) - log10(self.low)) / (log10(self.high) - log10(self.low))
        return (value - self.low) / (self.high - self.low)

    def text(self, tick: float) -> str:
        exponent = log10(tick) if self.log else 0.5
        if exponent == round(exponent) and not 1e-3 <= min(self.ticks) <= max(self.ticks) < 1e5:
            return power_text(10, round(exponent))
        return number_text(tick / 10.0**self.power, self._digits())

    def _digits(self) -> int:
        """As many as it takes to tell the ticks apart."""
        scaled = [tick / 10.0**self.power for tick in self.ticks]
        return next((n for n in range(3, 9) if len({number_text(each, n) for each in scaled}) == len(scaled)), 9)

    def named(self, label: str) -> str:
        return f"{label} (× {number_text(10.0**self.power)})" if self.power else label


def axis_of(values: Sequence[float], log: bool, tight: bool) -> Axis:
    """An axis that holds `values` (more than 0 if `log`); a tight one ends where they do."""
    low, high = min(values), max(values)
    if log:
        if low == high:
            low, high = low / 2, high * 2
        if not tight:
            low, high = round_around(low, high)
        return Axis(low, high, True, tuple(log_ticks(low, high)))
    if not tight and 0 < low < _FLAT * high:
        low = 0.0
    ticks = nice_ticks(low, high, 7 if tight else 6)
    largest = max(abs(ticks[0]), abs(ticks[-1]))
    power = 3 * floor(log10(largest) / 3) if largest >= 1e5 or largest < 1e-3 else 0
    if tight:
        kept = tuple(tick for tick in ticks if low - 1e-9 <= tick <= high * (1 + 1e-9))
        return Axis(low, high, False, kept, power)
    return Axis(ticks[0], ticks[-1], False, tuple(ticks), power)


def left_of(y_axis: Axis) -> float:
    """Where the plot begins: right of the longest number at its side."""
    return max(text_width(y_axis.text(tick)) for tick in y_axis.ticks) + 10


def placed(x_axis: Axis, y_axis: Axis, left: float, right: float, x: float, y: float) -> Point:
    """Where a point stands on the canvas."""
    return left + x_axis.share(x) * (right - left), TOP + (1 - y_axis.share(y)) * HEIGHT


def draw_grid(
    canvas: Canvas, labels: tuple[str, str], x_axis: Axis, y_axis: Axis, left: float, right: float, edge: float = 0.0
) -> None:
    """Both axes between `left` and `right`, named by `labels` (x and y), with a line at each round y; marks
    of x keep `edge` away from both ends."""
    bottom = TOP + HEIGHT
    canvas.label(0, 12, y_axis.named(labels[1]), "t3")
    for tick in y_axis.ticks:
        y = TOP + (1 - y_axis.share(tick)) * HEIGHT
        canvas.line([(left, y), (right, y)], "gl")
        canvas.label(left - 6, y + 4, y_axis.text(tick), "t3", "end")
    canvas.line([(left, bottom), (right, bottom)], "ax")
    free = 0.0  # where the text of the last tick ends
    for tick in x_axis.ticks:
        x, text = left + edge + x_axis.share(tick) * (right - left - 2 * edge), x_axis.text(tick)
        canvas.line([(x, bottom), (x, bottom + 4)], "ax")
        half = text_width(text) / 2
        x = min(x, canvas.width - half)
        if x - half >= free:
            canvas.label(x, bottom + 17, text, "t3", "middle")
            free = x + half + 4
    canvas.label(left, bottom + 35, x_axis.named(labels[0]), "t3")
