"""Measured = offset + factor × theory, a line for each series: what is there however small theory's figure is. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import floor, log10

from app.lab.least_squares import fit, tells, too_few
from app.theory.lab_runs import Point
from app.units import digits, step_for
from app.words import listed

_UNKNOWNS = 2  # offset and factor
_EXACT = 1e-6  # of a value: a smaller error is the computer's


@dataclass(frozen=True)
class Line:
    """A series' line through its points, by least squares of the relative residuals. Offset and its error are in
    the quantity's base unit; errors are half of 95 % intervals; `left` are x and measured over the line, less one."""

    series: str
    offset: float
    offset_error: float
    factor: float
    factor_error: float
    left: tuple[tuple[float, float], ...]

    @property
    def is_known(self) -> bool:
        """Whether the factor is more than nothing, and enough points say so."""
        return self.tells and self.factor_error <= abs(self.factor)

    @property
    def tells(self) -> bool:
        return tells(len(self.left), _UNKNOWNS)

    @property
    def has_offset(self) -> bool:
        """Whether the offset is more than its error makes of nothing."""
        return self.is_known and abs(self.offset) > self.offset_error

    def offset_text(self, dimension: str) -> str:
        unit = step_for(max(abs(self.offset), self.offset_error), dimension)
        return f"{_with_error(self.offset / unit.size, self.offset_error / unit.size)} {unit.unit}".rstrip()

    @property
    def factor_text(self) -> str:
        return _with_error(self.factor, self.factor_error)


def _with_error(value: float, error: float) -> str:
    """To the places that the error leaves; without one where it is nothing but rounding."""
    if error <= _EXACT * abs(value):
        return digits(value, 5)
    return f"{digits(round(value, 1 - floor(log10(error))), 6)} ± {digits(error, 2)}"


def lines_of(measured: Sequence[Point], theory: Sequence[Point]) -> tuple[Line, ...]:
    """A line for every series that has three points with theory, and whose points tell offset and factor apart."""
    known = {(point.name, point.x): point.y for point in theory}
    by_series: dict[str, list[tuple[float, float, float]]] = {}
    for point in measured:
        if known.get((point.name, point.x)):
            by_series.setdefault(point.name, []).append((point.x, known[point.name, point.x], point.y))
    lines = (_line(series, places) for series, places in by_series.items())
    return tuple(line for line in lines if line is not None)


def _line(series: str, places: Sequence[tuple[float, float, float]]) -> Line | None:
    found = fit([(1.0, expected) for _, expected, _ in places], [value for _, _, value in places], relative=True)
    if found is None or None in found.margins:
        return None
    (offset, factor), (offset_error, factor_error) = found.coefficients, (each or 0.0 for each in found.margins)
    left = tuple((x, value / (offset + factor * expected) - 1) for x, expected, value in places)
    return Line(series, offset, offset_error, factor, factor_error, left)


def said_of_steps(
    measured: Sequence[Point], theory: Sequence[Point], lines: Sequence[Line], of_steps: Sequence[int] = ()
) -> str:
    """What steps are beside their arithmetic at the peak, a line for each series, in few sentences. `of_steps` are runs
    whose own steps are the peak: it is no less than they were."""
    known: Mapping[tuple[str, float], float] = {(point.name, point.x): point.y for point in theory}
    ratios = [point.y / known[point.name, point.x] for point in measured if known.get((point.name, point.x))]
    if ratios and min(ratios) < 1 - _EXACT:  # only of a peak that is not final
        return "faster than at the peak that was known before. The line is drawn anew once all runs have ended."
    ends = list(dict.fromkeys(digits(each, 2) for each in (min(ratios), max(ratios))))
    between = f"{' to '.join(ends)} times its arithmetic at this machine's peak"
    if untold := _untold(lines):
        return f"{between}{untold}"
    named = len(lines) > 1
    each = [f"{line.series + ': ' if named else ''}{_said(line)}" for line in lines]
    said = f"{', '.join(each)} its arithmetic at this machine's peak"
    if of_steps:
        runs = listed([f"run {run}" for run in of_steps])
        return f"{said}, at the least. No plain product timed here was as fast as the steps of {runs}."
    if not any(line.has_offset for line in lines):
        return f"{said}. Whether a part of it is there however small the step is, these points do not tell."
    if any(line.has_offset and line.offset < 0 for line in lines):
        return f"{said}. A negative offset: the larger steps take longer for a FLOP than the smaller ones do."
    return f"{said}. The first part is there however small the step is."


def _untold(lines: Sequence[Line]) -> str:
    """Why there is nothing to say of offset and factor; nothing where there is."""
    if not lines:
        return ". A line takes three points."
    if fewest := [len(line.left) for line in lines if not line.tells]:
        return f", too few points to tell offset and factor. {too_few(min(fewest), _UNKNOWNS)} a series."
    if not all(line.is_known for line in lines):
        return ". These steps scatter too much for a line: take more steps, or a quiet machine."
    return ""


def _said(line: Line) -> str:
    times = f"{line.factor_text} times"
    return f"{line.offset_text('seconds')} and {times}" if line.has_offset else times
