"""What all laws share: the record of a law, where its points come from, and how a fit is told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from sqlalchemy.orm import Session

from app.content.diagrams.drawing import Drawing
from app.lab import plots
from app.lab.folds import Folds
from app.lab.least_squares import Fitted
from app.lab.models import Run
from app.theory.lab_runs import Point
from labs.spec import Figure, RunSpec

UNKNOWN = 0.5  # of a coefficient: with a standard error beyond that it is not known
_PLACES = 40
_NOISE = 0.03  # of a relative residual: what a quiet machine does, too


@dataclass(frozen=True)
class Coefficient:
    """What was fitted, how sure it is, and what stands beside it: theory's, or what the law's `beside` says."""

    name: str
    text: str
    error: str
    theory: str
    published: str = ""

    @classmethod
    def of(cls, fit: Fitted, at: int, name: str, text: str, theory: str, write: Callable[[float], str]) -> Coefficient:
        """Coefficient `at` of a fit, its standard error as `write` puts it; a dash where nobody knows it."""
        error = fit.errors[at]
        return cls(name, text, "–" if error is None else f"± {write(error)}", theory)


def plainly(error: float) -> str:
    """An error without a unit."""
    return f"{error:.2g}"


@dataclass(frozen=True)
class Law:
    """A law, and what came of fitting it. `wanted` says which runs it takes; `start` is where one gets them."""

    key: str
    title: str
    says: str
    wanted: str
    start: str
    start_text: str
    runs: tuple[int, ...] = ()
    coefficients: tuple[Coefficient, ...] = ()
    drawing: Drawing | None = None
    residual: str = ""
    beside: str = "Theory"  # the head of what stands beside a coefficient
    published: str = ""  # and of what others found, where somebody did


@dataclass(frozen=True)
class Source:
    """The finished runs to fit, with their events folded."""

    session: Session
    folds: Folds
    runs: Sequence[Run]

    def of_program(self, program: str) -> list[tuple[Run, RunSpec]]:
        """The newest first."""
        specs = [(run, RunSpec.model_validate(run.spec)) for run in self.runs]
        return [(run, spec) for run, spec in specs if spec.program == program]

    def points(self, run: Run, figure: str) -> list[Point]:
        return [point for point in self.folds.view(self.session, run).points if point.figure == figure]


def drawn(
    name: str, figure: Figure, dots: Sequence[Point], line: Sequence[Point], says: str = "the law"
) -> Drawing | None:
    """Measured dots and the dashed line of a law, both under one name."""
    drawing = plots.draw_figure(name, figure, dots, line, plots.LAW)
    return None if drawing is None else replace(drawing, finding=f"Dots are measured, dashes are {says}.")


def between(low: float, high: float, is_log: bool = True) -> list[float]:
    """Places close enough that a law drawn through them bends as it does."""
    shares = [at / _PLACES for at in range(_PLACES + 1)]
    return [low * (high / low) ** each if is_log else low + (high - low) * each for each in shares]


def residual(fit: Fitted, measured: Sequence[float], when_it_bends: str) -> str:
    """What is left over, in words; `measured` is in the order of the points along the axis."""
    apart = [left / value for left, value in zip(fit.residuals, measured, strict=True)]
    worst = max(map(abs, apart))
    if _is_unknown(fit):
        return (
            "The standard error is as large as what was fitted: these points scatter too much to know it. Run it again "
            "while the machine does nothing else."
        )
    if all(error is None for error in fit.errors):
        return "As many points as unknowns: the line goes through them whatever they are, and says nothing of itself."
    said = f"At most {100 * worst:.2g} % is left over"
    signs = [each > 0 for each in apart]
    changes = sum(a != b for a, b in pairwise(signs))
    if worst < _NOISE:
        return f"{said}: the law holds as far as this machine can tell."
    if len(apart) > 3 and changes <= 2:
        return f"{said}, and it bends: {when_it_bends}."
    return f"{said}, above and below in turn: that is the machine, not the law. Repeat it to see."


def _is_unknown(fit: Fitted) -> bool:
    """Whether something that was fitted may as well be nothing."""
    return any(
        error is not None and error > UNKNOWN * abs(value)
        for value, error in zip(fit.coefficients, fit.errors, strict=True)
    )
