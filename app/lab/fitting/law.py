"""What all laws share: the record of a law, where its points come from, and how a fit is told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby

from sqlalchemy.orm import Session

from app.content.diagrams.drawing import Drawing
from app.lab import plots
from app.lab.fitting.sketches import sketch
from app.lab.fitting.tensors import TensorRow
from app.lab.folds import Folds
from app.lab.least_squares import Fitted, fit, too_few
from app.lab.models import Run
from app.lab.residuals import is_patterned, percent_apart
from app.lab.view import RunView
from app.theory.lab_runs import Point
from app.units import digits
from app.words import lowered, often
from labs.spec import Figure, RunSpec

_PLACES = 40
_ROWS = 4  # of points on one side: so many are told one by one
_NOISE = 0.03  # of a relative residual: what a quiet machine does, too
LEFT_OUT = "left out"  # the series of points that no fit has


@dataclass(frozen=True)
class Coefficient:
    """What was fitted, its 95 % interval, and what stands beside it: theory's, or what the law's `beside` says. Where
    the interval takes in nothing at all, the points do not determine it, and no value is shown."""

    name: str
    text: str
    error: str
    theory: str
    published: str = ""
    is_determined: bool = True

    @classmethod
    def of(cls, fit: Fitted, at: int, name: str, text: str, theory: str, write: Callable[[float], str]) -> Coefficient:
        """Coefficient `at` of a fit, half its 95 % interval as `write` puts it; a dash where nobody knows it."""
        margin = fit.margins[at]
        if fit.is_unknown(at):
            return cls(name, "not determined by these points", "–", theory, is_determined=False)
        return cls(name, text, "–" if margin is None else f"± {write(margin)}", theory)


def plainly(error: float) -> str:
    """An error without a unit."""
    return f"{error:.2g}"


@dataclass(frozen=True)
class Sample:
    """A measured point. `aim` ≈ Σ coefficient · `row` is what is fitted, `x` and `y` are what is drawn, in base units;
    `cells` says it in the table, under the law's heads. `key` is its own among the points of its law."""

    key: str
    runs: tuple[int, ...]
    cells: tuple[str, ...]
    series: str
    x: float
    y: float
    row: tuple[float, ...]
    aim: float


@dataclass(frozen=True)
class FitPoint:
    """A row of the points: the address calls it `key`. `apart` is measured over the law, less one, in words."""

    key: str
    runs: tuple[int, ...]
    cells: tuple[str, ...]
    apart: str
    is_out: bool


@dataclass(frozen=True)
class Law:
    """A law, and what came of fitting it. `wanted` says which runs it takes; `start` is where one gets them."""

    key: str
    title: str
    says: str
    wanted: str
    start: str
    start_text: str
    heads: tuple[str, ...] = ()  # of the points' cells
    runs: tuple[int, ...] = ()
    coefficients: tuple[Coefficient, ...] = ()
    points: tuple[FitPoint, ...] = ()
    drawing: Drawing | None = None
    residuals: Drawing | None = None
    residual: str = ""
    beside: str = "Theory"  # the head of what stands beside a coefficient
    published: str = ""  # and of what others found, where somebody did
    tensors: tuple[TensorRow, ...] = ()  # what its coefficients are made of, where that is known

    @property
    def sketch(self) -> Drawing:
        """What it says over its knob, for where nothing has been fitted yet."""
        return sketch(self.key)

    @property
    def without(self) -> str:
        """How many points were left out; nothing where none was."""
        out = sum(point.is_out for point in self.points)
        return f"without {out} of {len(self.points)} points" if out else ""


@dataclass(frozen=True)
class Source:
    """The finished runs to fit, with their events folded, and the points that the learner leaves out, as addresses
    call them."""

    session: Session
    folds: Folds
    runs: Sequence[Run]
    without: frozenset[str] = frozenset()

    def of_program(self, program: str) -> list[tuple[Run, RunSpec]]:
        """The newest first."""
        specs = [(run, RunSpec.model_validate(run.spec)) for run in self.runs]
        return [(run, spec) for run, spec in specs if spec.program == program]

    def points(self, run: Run, figure: str) -> list[Point]:
        return [point for point in self.view(run).points if point.figure == figure]

    def view(self, run: Run) -> RunView:
        return self.folds.view(self.session, run)

    def fitting(self, law: Law, samples: Sequence[Sample], relative: bool = False) -> Fitting:
        """A law's points in the order of x, and which of them are left out."""
        ordered = tuple(sorted(samples, key=lambda sample: sample.x))
        out = frozenset(each.key for each in ordered if f"{law.key}.{each.key}" in self.without)
        return Fitting(law, ordered, out, relative)


@dataclass(frozen=True)
class Fitting:
    """The points of a law, fitted: those that `out` does not name."""

    law: Law
    samples: tuple[Sample, ...]
    out: frozenset[str]
    relative: bool

    @property
    def kept(self) -> tuple[Sample, ...]:
        return tuple(sample for sample in self.samples if sample.key not in self.out)

    @cached_property
    def fitted(self) -> Fitted | None:
        return fit([each.row for each in self.kept], [each.aim for each in self.kept], self.relative)

    def unfitted(self) -> Law:
        """The law with its points alone: too many were left out to fit it."""
        said = "The points that are left do not tell what is asked for. Put some back."
        return replace(self.law, runs=self._runs(), points=self._points(None), residual=said)

    def law_with(
        self,
        figure: Figure,
        at: Callable[[Sample], float],
        line: Sequence[tuple[str, float, float]],
        says: str,
        coefficients: Sequence[Coefficient],
        residual: str,
    ) -> Law:
        """The law as it was fitted. `at` is its value at a point, in the units of y; `line` has the dashes to draw, by
        series, which `says` names."""
        name = self.law.key
        dots = [Point(name, LEFT_OUT if each.key in self.out else each.series, each.x, each.y) for each in self.samples]
        dots.sort(key=lambda dot: dot.name == LEFT_OUT)  # the last of the colours
        drawing = plots.draw_figure(name, figure, dots, [Point(name, *place) for place in line], plots.LAW)
        return replace(
            self.law,
            runs=self._runs(),
            coefficients=tuple(coefficients),
            points=self._points(at),
            drawing=drawing and replace(drawing, finding=f"Dots are measured, dashes are {says}."),
            residuals=self._residuals(figure, at),
            residual=residual,
        )

    def _runs(self) -> tuple[int, ...]:
        return tuple(sorted({run for sample in self.kept for run in sample.runs}))

    def _points(self, at: Callable[[Sample], float] | None) -> tuple[FitPoint, ...]:
        return tuple(
            FitPoint(
                f"{self.law.key}.{each.key}",
                each.runs,
                each.cells,
                "–" if at is None else percent_apart(each.y, at(each)),
                each.key in self.out,
            )
            for each in self.samples
        )

    def _residuals(self, figure: Figure, at: Callable[[Sample], float]) -> Drawing | None:
        """Measured over the law, less one, in per cent, of the points that were fitted."""
        apart = [Point("left", each.series, each.x, 100 * (each.y / at(each) - 1)) for each in self.kept if at(each)]
        shown = replace(figure, title="What is left over", y="Measured less the law", y_unit="%", y_log=False)
        drawing = plots.draw_figure(f"{self.law.key}-left", shown, apart, (), plots.RESIDUALS)
        return drawing and replace(drawing, finding="In per cent of the law, from 0.")


def between(low: float, high: float, is_log: bool = True) -> list[float]:
    """Places close enough that a law drawn through them bends as it does."""
    shares = [at / _PLACES for at in range(_PLACES + 1)]
    return [low * (high / low) ** each if is_log else low + (high - low) * each for each in shares]


def residual(fitting: Fitting, fit: Fitted, apart: Sequence[float], when_it_bends: str) -> str:
    """What is left over, in words; `apart` is measured over the law, less one, of the points kept, along the axis."""
    if not fit.tells:
        return f"Too few points to tell: {too_few(len(apart), len(fit.coefficients))}. Run it again, or put some back."
    if any(map(fit.is_unknown, range(len(fit.coefficients)))):
        return (
            "An interval takes in nothing at all: these points scatter too much to know what was fitted. Leave out "
            "what was disturbed, or run it again while the machine does nothing else."
        )
    at = max(range(len(apart)), key=lambda index: abs(apart[index]))
    where = f"{lowered(fitting.law.heads[0])} {fitting.kept[at].cells[0]}"
    said = f"At most {digits(100 * abs(apart[at]), 2)} % is left over, at {where}"
    if abs(apart[at]) < _NOISE:
        return f"{said}: the law holds as far as this machine can tell."
    if is_patterned(apart):
        return f"{said}, and it bends: {when_it_bends}."
    runs = {run for sample in fitting.kept for run in sample.runs}
    if len(runs) > 1:
        return f"{said}, with no order along the axis in {len(runs)} runs: that is the machine, not the law."
    return (
        f"{said}. Along the axis {_sides(apart)}: one run cannot tell whether the machine did that or a term that the "
        "law lacks. Run it again: what the machine did falls on other points then."
    )


def _sides(apart: Sequence[float]) -> str:
    """How many points in a row lie on which side of the law; of many rows, how often they change sides."""
    rows = [(is_above, len(list(each))) for is_above, each in groupby(apart, key=lambda value: value > 0)]
    if len(rows) > _ROWS:
        above = sum(value > 0 for value in apart)
        return f"{len(apart) - above} lie below the law and {above} above it, changing sides {often(len(rows) - 1)}"
    said = [f"{count} {'above' if is_above else 'below'}" for is_above, count in rows]
    return f"{', then '.join(said)} the law"
