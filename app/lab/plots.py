"""What a program measured, drawn over what it varied: dashes are theory, dots and thin lines are measured."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from math import exp, isfinite, log

from app.content.diagrams.drawing import Drawing
from app.content.diagrams.plot import HEIGHT, TOP, Axis, axis_of, draw_grid, left_of, placed
from app.content.diagrams.svg import NARROW, Canvas, number_text, text_width, wrap_svg
from app.lab.laws import said_of_laws
from app.theory.lab_runs import Point
from app.units import BASE_UNITS, step_for
from labs.spec import Figure

_RIGHT, _DOT = 12.0, 3.0
BROAD = 512.0  # fills half a page of 1,440 px; text is as large as on the narrow one
_HIDES = 2.5  # pixels between two points of which one hides the other
_PIECES = 16  # of a curve between two points
_DOTTED = 20  # more dots than that would run into each other
_NARROW = 3  # what stays within this factor would lie flat in a whole decade
_MARKED = 9  # so many values of x at most are all marked on its axis
_NAMED = 3  # from so many series on each is named at its line's end, and not in a key
_NAME_APART, _NAME_MOST = 15.0, 128.0  # pixels between two names, and the widest
RUN_TONES = 4  # series that are no data's colour: by ink and shape, as many as may be beside each other
TONES = 8  # as many colours as the style sheet has for series; the ninth looks like the first
_DIMENSIONS: Mapping[str, str] = {unit: dimension for dimension, unit in BASE_UNITS.items()}
_SCALED = ("B", "s", "FLOP/s", "B/s")  # axes in these base units choose the unit that suits their values

_Places = list[tuple[float, float]]


@dataclass(frozen=True)
class Style:
    """How a figure's marks look: a thin line through the measured dots or dots alone, or bars from 0 as residuals have
    them; `tones` names the classes of its series; one that is `broad` is drawn for wide columns as well."""

    is_joined: bool = True
    is_bars: bool = False
    tones: str = "series"
    broad: bool = False

    def tone(self, at: int) -> str:
        return f"d-{self.tones}-{at % (TONES if self.tones == 'series' else RUN_TONES)}"

    def dot(self, at: int) -> str:
        return f"d-dot-{at % TONES}" if self.tones == "series" else f"{self.tone(at)} d-point"


LINES = Style()
WIDE = Style(broad=True)
BESIDE = Style(tones="run")
LAW = Style(is_joined=False, tones="run", broad=True)
RESIDUALS = Style(is_joined=False, is_bars=True, tones="run", broad=True)


@dataclass(frozen=True)
class _Unit:
    """What values are divided by, and what they are then in."""

    name: str = ""
    size: float = 1.0

    def of(self, axis: str) -> str:
        return f"{axis}, {self.name}" if self.name and self.name.rstrip("s") != axis.rstrip("s") else axis


LAWS = "d-theory"  # of theory's line and of a fitted one, whatever colours the measured series have


def draw_figure(
    name: str, figure: Figure, measured: Iterable[Point], expected: Iterable[Point], style: Style = LINES
) -> Drawing | None:
    """One figure with a tone a series; None while nothing that can be drawn has been measured."""
    dots, dashes = ([point for point in points if _can_stand(figure, point)] for points in (measured, expected))
    fitted = [point for point in dots if figure.is_fitted(point.name)]
    dots = [point for point in dots if not figure.is_fitted(point.name)]
    if not dots:
        return None
    dashes += fitted
    both = [*dots, *dashes]  # of what theory and measurement say, and of laws
    units = (
        _unit(figure.x_unit, [point.x for point in both], figure.x_log),
        _unit(figure.y_unit, [point.y for point in both], figure.y_log),
    )
    plot = _Plot(figure, dots, dashes, units, style)
    says = _says(figure, dots, plot.names, *units)
    head, rows = _table(figure, dots, dashes, plot.names, *units)
    table = tuple(rows)
    key = [] if plot.is_named or (style.broad and len(plot.names) == 1) else plot.key
    picture = plot.drawn(NARROW).picture(TOP + HEIGHT + 40, says, head, table, key)
    svg = wrap_svg(picture, f"figure-{name}", figure.title)
    broad = plot.drawn(BROAD).picture(TOP + HEIGHT + 40, says, head, table, key) if style.broad else None
    finding = "Measured here; theory knows no figure for it."
    if dashes:
        lines = "Dashes and dots are laws" if len(plot.laws) > 1 else "Dashes are a law" if fitted else ""
        finding = f"{lines + ' fitted here' if fitted else 'Dashes are theory'}, the rest is measured."
        finding = f"{said_of_laws(figure, both)} {finding}".strip()
    return Drawing(
        figure.title,
        finding,
        svg,
        says,
        picture.head,
        picture.rows,
        picture.key,
        False,
        broad=None if broad is None else wrap_svg(broad, f"figure-{name}-broad", figure.title),
    )


class _Plot:
    """A figure's axes and series, to be drawn at any width."""

    def __init__(
        self, figure: Figure, dots: list[Point], dashes: list[Point], units: tuple[_Unit, _Unit], style: Style
    ) -> None:
        self.figure, self.dots, self.dashes, self.units, self.style = figure, dots, dashes, units, style
        both = [*dots, *dashes]
        xs = sorted({point.x / units[0].size for point in both})
        ys = [point.y / units[1].size for point in both]
        self.x_axis = axis_of([point.x / units[0].size for point in both], figure.x_log, tight=len(xs) > 1)
        from_zero = [0.0] if style.is_bars or (style.broad and not figure.y_log) else []
        self.y_axis = axis_of([*ys, *from_zero], figure.y_log, tight=figure.y_log and max(ys) < _NARROW * min(ys))
        marked = sorted({point.x / units[0].size for point in dots})
        if len(marked) <= _MARKED:
            self.x_axis = replace(self.x_axis, ticks=tuple(marked))
        self.names = list(dict.fromkeys(point.name for point in both))
        self.widest = max(map(text_width, self.names))
        from_count = 2 if style.broad else _NAMED
        fits = len(self.names) <= HEIGHT / _NAME_APART and self.widest <= _NAME_MOST
        self.is_named = from_count <= len(self.names) and fits and not style.is_bars
        self.tones = [LAWS if figure.is_fitted(series) else style.tone(at) for at, series in enumerate(self.names)]
        self.laws = [series for series in self.names if figure.is_fitted(series)]
        self.key = list(zip(self.tones, self.names, strict=True))

    def drawn(self, width: float) -> Canvas:
        canvas = Canvas(width)
        left = left_of(self.y_axis)
        right = width - (self.widest + 2 * _RIGHT if self.is_named else _RIGHT)
        edge = 2 * _DOT * len(self.names) if self.style.is_bars else 2 * _DOT if self.style.broad else 0.0
        labels = tuple(unit.of(axis) for unit, axis in zip(self.units, (self.figure.x, self.figure.y), strict=True))
        inside = (left + edge, right - edge)
        draw_grid(canvas, (labels[0], labels[1]), self.x_axis, self.y_axis, left, right, edge)
        places = [
            [
                _places(points, series, self.x_axis, self.y_axis, self.units, *inside)
                for points in (self.dashes, self.dots)
            ]
            for series in self.names
        ]
        if self.style.is_bars:
            self._bars(canvas, [dots for _, dots in places])
            return canvas
        for tone, at in enumerate(places):
            if self.style.is_joined and any(_is_over(other[1], at[1]) for other in places[tone + 1 :]):
                canvas.line(at[1], f"{self.style.tone(tone)} d-under")
            _draw_series(canvas, self.style, tone, *at)
        for series, expected in zip(self.names, self._laws(inside), strict=True):  # above what was measured
            if len(expected) > 1:
                canvas.line(expected, f"{LAWS} {'d-dotted' if series in self.laws[1:] else 'd-expected'}")
        if self.is_named:
            _name_series(canvas, self.tones, self.names, places, right)
        return canvas

    def _laws(self, inside: tuple[float, float]) -> Iterator[_Places]:
        """The dashed line of each series: through its points, and between those of an affine law where it lies."""
        for series in self.names:
            points = [point for point in self.dashes if point.name == series]
            if self.figure.is_affine:
                points = _between(points)
            yield _places(points, series, self.x_axis, self.y_axis, self.units, *inside)

    def _bars(self, canvas: Canvas, places: list[_Places]) -> None:
        """A bar from 0 for each residual, those of one x beside each other."""
        zero = TOP + (1 - self.y_axis.share(0.0)) * HEIGHT
        for tone, at in enumerate(places):
            shift = (tone - len(places) / 2) * 4 * _DOT / 1.2
            for x, y in at:
                canvas.box(
                    x + shift, min(y, zero), 2.6 * _DOT, max(abs(y - zero), 1.0), f"{self.style.tone(tone)} d-bar-of"
                )
        canvas.line([(left_of(self.y_axis), zero), (canvas.width - _RIGHT, zero)], "ax")


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


def _between(points: Iterable[Point]) -> list[Point]:
    """The points of an affine law, and as many between each two as make a curve of it, evenly on a log axis."""
    ordered = sorted(points, key=lambda point: point.x)
    found = ordered[:1]
    for start, end in pairwise(ordered):
        xs = [start.x * (end.x / start.x) ** (step / _PIECES) for step in range(1, _PIECES)] if start.x > 0 else []
        slope = (end.y - start.y) / (end.x - start.x)
        found += [replace(start, x=x, y=start.y + slope * (x - start.x)) for x in xs]
        found.append(end)
    return found


def _is_over(upper: list[tuple[float, float]], lower: list[tuple[float, float]]) -> bool:
    """Whether a series drawn later hides one: the same points, to the pixel. The lower one is drawn broad then."""
    return (
        len(lower) > 1
        and len(upper) == len(lower)
        and all(abs(x - u) < _HIDES and abs(y - v) < _HIDES for (x, y), (u, v) in zip(lower, upper, strict=True))
    )


def _draw_series(canvas: Canvas, style: Style, tone: int, expected: _Places, measured: _Places) -> None:
    for x, y in expected if len(expected) == 1 else ():
        canvas.line([(x - 7, y), (x + 7, y)], LAWS)
    if style.is_joined and len(measured) > 1:
        canvas.line(measured, style.tone(tone))
    for x, y in measured if len(measured) <= _DOTTED else ():
        canvas.circle(x, y, _DOT, style.dot(tone))


def _name_series(canvas: Canvas, tones: list[str], names: list[str], places: list[list[_Places]], right: float) -> None:
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
        canvas.line([(x, y), (right + 4, height), (right + _RIGHT, height)], f"{tones[tone]} d-leader")
        canvas.label(right + _RIGHT + 4, height + 4, names[tone])


def _table(
    figure: Figure, dots: list[Point], dashes: list[Point], names: list[str], x_unit: _Unit, y_unit: _Unit
) -> tuple[tuple[str, ...], Iterator[tuple[str, ...]]]:
    """A row for each x, measured and theory of every series beside each other."""
    known = {("", p.name, p.x): p.y for p in dots}
    known |= {("" if figure.is_fitted(p.name) else ", theory", p.name, p.x): p.y for p in dashes}
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
