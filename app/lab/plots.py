"""What a program measured, drawn over what it varied: dashes are theory, dots and thin lines are measured."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from math import exp, isfinite, log

from app.content.diagrams.drawing import Drawing
from app.content.diagrams.plot import HEIGHT, TOP, Axis, axis_of, draw_grid, left_of, placed
from app.content.diagrams.svg import Canvas, number_text, text_width, wrap_svg
from app.theory.lab_runs import Point
from app.units import BASE_UNITS, step_for
from labs.spec import Figure

_RIGHT, _DOT = 12.0, 3.0
_HIDES = 2.5  # pixels between two points of which one hides the other
_DOTTED = 20  # more dots than that would run into each other
_NARROW = 3  # what stays within this factor would lie flat in a whole decade
_MARKED = 9  # so many values of x at most are all marked on its axis
_NAMED = 3  # from so many series on each is named at its line's end, and not in a key
_NAME_APART, _NAME_MOST = 15.0, 128.0  # pixels between two names, and the widest
TONES = 8  # as many colours as the style sheet has for series; the ninth looks like the first
_DIMENSIONS: Mapping[str, str] = {unit: dimension for dimension, unit in BASE_UNITS.items()}
_SCALED = ("B", "s", "FLOP/s", "B/s")  # axes in these base units choose the unit that suits their values

_Places = list[tuple[float, float]]


@dataclass(frozen=True)
class _Unit:
    """What values are divided by, and what they are then in."""

    name: str = ""
    size: float = 1.0

    def of(self, axis: str) -> str:
        return f"{axis}, {self.name}" if self.name and self.name.rstrip("s") != axis.rstrip("s") else axis


def draw_figure(name: str, figure: Figure, measured: Iterable[Point], expected: Iterable[Point]) -> Drawing | None:
    """One figure with a colour a series; None while nothing that can be drawn has been measured."""
    dots, dashes = ([point for point in points if _can_stand(figure, point)] for points in (measured, expected))
    if not dots:
        return None
    both = [*dots, *dashes]
    x_unit = _unit(figure.x_unit, [point.x for point in both], figure.x_log)
    y_unit = _unit(figure.y_unit, [point.y for point in both], figure.y_log)
    x_axis = axis_of(
        [point.x / x_unit.size for point in both], figure.x_log, tight=len({point.x for point in both}) > 1
    )
    ys = [point.y / y_unit.size for point in both]
    y_axis = axis_of(ys, figure.y_log, tight=figure.y_log and max(ys) < _NARROW * min(ys))
    xs = sorted({point.x / x_unit.size for point in both})
    if len(xs) <= _MARKED:
        x_axis = replace(x_axis, ticks=tuple(xs))
    canvas = Canvas()
    names = list(dict.fromkeys(point.name for point in both))
    widest = max(map(text_width, names))
    is_named = _NAMED <= len(names) <= HEIGHT / _NAME_APART and widest <= _NAME_MOST
    left, right = left_of(y_axis), canvas.width - (widest + 2 * _RIGHT if is_named else _RIGHT)
    draw_grid(canvas, (x_unit.of(figure.x), y_unit.of(figure.y)), x_axis, y_axis, left, right)
    places = [
        [_places(points, series, x_axis, y_axis, (x_unit, y_unit), left, right) for points in (dashes, dots)]
        for series in names
    ]
    for tone, at in enumerate(places):
        if any(_is_over(other[1], at[1]) for other in places[tone + 1 :]):
            canvas.line(at[1], f"d-series-{tone % TONES} d-under")
        _draw_series(canvas, tone % TONES, *at)
    says = _says(figure, dots, names, x_unit, y_unit)
    if is_named:
        _name_series(canvas, names, places, right)
    key = [] if is_named else [(f"d-series-{tone % TONES}", series) for tone, series in enumerate(names)]
    head, rows = _table(figure, dots, dashes, names, x_unit, y_unit)
    picture = canvas.picture(TOP + HEIGHT + 40, says, head, rows, key)
    svg = wrap_svg(picture, f"figure-{name}", figure.title)
    finding = "Dashes are theory, the rest is measured." if dashes else "Measured here; theory knows no figure for it."
    return Drawing(figure.title, finding, svg, says, picture.head, picture.rows, picture.key, False)


def _can_stand(figure: Figure, point: Point) -> bool:
    """A log axis has no place for 0 or less."""
    return all(
        isfinite(value) and (value > 0 or not is_log)
        for value, is_log in ((point.x, figure.x_log), (point.y, figure.y_log))
    )


def _unit(unit: str, values: list[float], is_log: bool) -> _Unit:
    """The unit in which the largest value, or the middle of a log axis, is at least 1."""
    if unit not in _SCALED:
        return _Unit(unit)
    sizes = [abs(value) for value in values if value]
    typical = max(sizes, default=1.0)
    if is_log and sizes:
        typical = exp((log(min(sizes)) + log(max(sizes))) / 2)
    step = step_for(typical, _DIMENSIONS[unit])
    return _Unit(step.unit, step.size)


def _places(
    points: list[Point], series: str, x_axis: Axis, y_axis: Axis, units: tuple[_Unit, _Unit], left: float, right: float
) -> list[tuple[float, float]]:
    mine = sorted((point.x, point.y) for point in points if point.name == series)
    return [placed(x_axis, y_axis, left, right, x / units[0].size, y / units[1].size) for x, y in mine]


def _is_over(upper: list[tuple[float, float]], lower: list[tuple[float, float]]) -> bool:
    """Whether a series drawn later hides one: the same points, to the pixel. The lower one is drawn broad then."""
    return (
        len(lower) > 1
        and len(upper) == len(lower)
        and all(abs(x - u) < _HIDES and abs(y - v) < _HIDES for (x, y), (u, v) in zip(lower, upper, strict=True))
    )


def _draw_series(
    canvas: Canvas, tone: int, expected: list[tuple[float, float]], measured: list[tuple[float, float]]
) -> None:
    if len(expected) > 1:
        canvas.line(expected, f"d-series-{tone} d-expected")
    for x, y in expected if len(expected) == 1 else ():
        canvas.line([(x - 7, y), (x + 7, y)], f"d-series-{tone}")
    if len(measured) > 1:
        canvas.line(measured, f"d-series-{tone}")
    for x, y in measured if len(measured) <= _DOTTED else ():
        canvas.circle(x, y, _DOT, f"d-dot-{tone}")


def _name_series(canvas: Canvas, names: list[str], places: list[list[_Places]], right: float) -> None:
    """Each name beside the end of its line, as far apart as text needs, with a stroke in its colour to the line."""
    ends = sorted((*(measured or expected)[-1][::-1], tone) for tone, (expected, measured) in enumerate(places))
    heights = [y for y, _, _ in ends]
    for index in range(1, len(ends)):
        heights[index] = max(heights[index], heights[index - 1] + _NAME_APART)
    over = heights[-1] - (TOP + HEIGHT)
    if over > 0:
        heights[-1] -= over
        for index in range(len(ends) - 2, -1, -1):
            heights[index] = min(heights[index], heights[index + 1] - _NAME_APART)
    for (y, x, tone), height in zip(ends, heights, strict=True):
        canvas.line([(x, y), (right + 4, height), (right + _RIGHT, height)], f"d-series-{tone % TONES} d-leader")
        canvas.label(right + _RIGHT + 4, height + 4, names[tone])


def _table(
    figure: Figure, dots: list[Point], dashes: list[Point], names: list[str], x_unit: _Unit, y_unit: _Unit
) -> tuple[tuple[str, ...], Iterator[tuple[str, ...]]]:
    """A row for each x, measured and theory of every series beside each other."""
    known = {(kind, p.name, p.x): p.y for kind, points in (("", dots), (", theory", dashes)) for p in points}
    columns = [
        (kind, name)
        for name in names
        for kind in ("", ", theory")
        if any((kind, name) == (found, series) for found, series, _ in known)
    ]
    rows = (
        (
            number_text(x / x_unit.size, 4),
            *(
                number_text(known[kind, name, x] / y_unit.size, 4) if (kind, name, x) in known else "–"
                for kind, name in columns
            ),
        )
        for x in sorted({point.x for point in chain(dots, dashes)})
    )
    return (x_unit.of(figure.x), *(f"{name}{kind}" for kind, name in columns)), rows


def _says(figure: Figure, dots: list[Point], names: list[str], x_unit: _Unit, y_unit: _Unit) -> str:
    said = []
    for name in names:
        mine = sorted((point.x, point.y) for point in dots if point.name == name)
        if mine:
            ends = [number_text(y / y_unit.size) for _, y in (mine[0], mine[-1])]
            said.append(f"{name} from {ends[0]} to {ends[1]}" if len(mine) > 1 else f"{name} {ends[0]}")
    xs = [point.x / x_unit.size for point in dots]
    over = f"{x_unit.of(figure.x)} from {number_text(min(xs))} to {number_text(max(xs))}"
    return f"{y_unit.of(figure.y)} over {over}: {'; '.join(said)}."
