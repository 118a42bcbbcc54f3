"""Formulas over one of their inputs, each point evaluated in the content's sandbox."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from math import ceil, floor

from app.content.diagrams.plot import HEIGHT, TOP, axis_of, draw_grid, left_of, placed
from app.content.diagrams.schema import Curve, XAxis
from app.content.diagrams.svg import (
    LINE,
    NARROW,
    Canvas,
    Picture,
    Point,
    number_text,
    spread,
    text_width,
    wrapped,
)
from app.content.live import NAMES, ExpressionError, Expressions, at

_POINTS, _LABELS, _SAMPLE = 65, 84.0, 20.0
_STROKES = ("d-curve-0", "d-curve-1", "d-curve-2", "d-curve-3")  # told apart by dash and weight


def points(record: Curve, expressions: Expressions) -> tuple[list[float], list[list[float]]]:
    """The x of all points and each series' y there. Raises ExpressionError naming the series.

    Where the expressions take only whole numbers, or round x up themselves, the points are whole.
    """
    if record.x.name in NAMES:
        with at("x", "name"):
            raise ExpressionError(f"{record.x.name!r} is a formula's name already")
    rounds = re.compile(rf"\bceil\(\s*{record.x.name}\s*\)")
    whole = any(rounds.search(series.y) for series in record.series)  # between whole numbers there would be stairs
    last: ExpressionError | None = None
    for places in (_whole_places(record.x),) if whole else (_places(record.x), _whole_places(record.x)):
        try:
            if len(places) > 1:
                return places, [_values(record, index, places, expressions) for index in range(len(record.series))]
        except ExpressionError as error:
            last = error
    raise last or ExpressionError("x: there is nothing between `from` and `to`")


def _places(x: XAxis) -> list[float]:
    steps = [index / (_POINTS - 1) for index in range(_POINTS)]
    between: Callable[[float], float] = lambda step: x.start + (x.end - x.start) * step  # noqa: E731
    if x.log:
        between = lambda step: x.start * (x.end / x.start) ** step  # noqa: E731
    return [x.start, *map(between, steps[1:-1]), x.end]


def _whole_places(x: XAxis) -> list[float]:
    if x.end - x.start < 2 * _POINTS and not x.log:
        return [float(each) for each in range(ceil(x.start), floor(x.end) + 1)]
    return sorted({float(round(each)) for each in _places(x) if x.start <= round(each) <= x.end})


def _values(record: Curve, index: int, places: list[float], expressions: Expressions) -> list[float]:
    found = []
    with at("series", index, "y"):
        for place in places:
            value = int(place) if place == int(place) else place
            y = float(Expressions({**expressions.values, record.x.name: value}).number(record.series[index].y))
            if record.y_log and y <= 0:
                raise ExpressionError(f"{y:g} at {record.x.name} = {place:g}: a log axis takes more than 0")
            found.append(y)
    return found


def draw_curve(record: Curve, expressions: Expressions) -> Picture:
    """One line a series, its name at its end, or below in a key where names are long. Raises ExpressionError."""
    places, values = points(record, expressions)
    x_axis = axis_of(places, record.x.log, tight=True)
    y_axis = axis_of([y for series in values for y in series], record.y_log, tight=False)
    names = [wrapped(series.label, _LABELS) for series in record.series]
    beside = len(record.series) > 1 and all(
        len(lines) <= 2 and max(map(text_width, lines)) <= _LABELS for lines in names
    )
    left = left_of(y_axis)
    right = NARROW - (max(text_width(line) for lines in names for line in lines) + _SAMPLE + 10 if beside else 12)
    canvas = Canvas()
    draw_grid(canvas, (record.x.label, record.y_label), x_axis, y_axis, left, right)

    def place(x: float, y: float) -> Point:
        return placed(x_axis, y_axis, left, right, x, y)

    for stroke, series in zip(_STROKES, values, strict=False):
        canvas.line([place(x, y) for x, y in zip(places, series, strict=True)], stroke)
    if beside:
        ends = [place(places[-1], series[-1])[1] for series in values]
        gap = LINE * max(map(len, names)) + 2
        apart = spread(ends, gap, TOP + 4, TOP + HEIGHT)
        for stroke, lines, y in zip(_STROKES, names, apart, strict=False):
            canvas.line([(right + 6, y), (right + 4 + _SAMPLE, y)], stroke)  # curves may end in one point
            canvas.lines(right + 8 + _SAMPLE, y + 4 - (len(lines) - 1) * LINE / 2, lines, "d-ink")
    return canvas.picture(
        TOP + HEIGHT + 40,
        _sentence(record, places, values),
        (record.x.label, *(series.label for series in record.series)),
        _rows(places, values),
        ()
        if beside or len(record.series) == 1
        else zip(_STROKES, (each.label for each in record.series), strict=False),
    )


def _rows(places: Sequence[float], values: Sequence[Sequence[float]]) -> list[tuple[str, ...]]:
    """About nine points, the first and the last among them."""
    count = min(9, len(places))
    chosen = sorted({round(index * (len(places) - 1) / (count - 1)) for index in range(count)})
    return [(number_text(places[i], 4), *(number_text(series[i], 4) for series in values)) for i in chosen]


def _sentence(record: Curve, places: Sequence[float], values: Sequence[Sequence[float]]) -> str:
    each = "; ".join(
        f"{series.label} goes from {number_text(ys[0])} to {number_text(ys[-1])}"
        for series, ys in zip(record.series, values, strict=True)
    )
    over = f"{record.x.label} from {number_text(places[0])} to {number_text(places[-1])}"
    return f"{record.y_label} over {over}: {each}."
