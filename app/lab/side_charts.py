"""What several runs reported, on one axis: the steps of trainings, and the figures that programs share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import quantiles

from sqlalchemy.orm import Session

from app.content.diagrams.drawing import Drawing
from app.lab import findings, plots, results
from app.lab.models import Run
from app.lab.view import RunView
from app.theory.lab_runs import Point
from app.units import digits, step_for
from labs.spec import Figure, RunSpec
from labs.spec.events import StepEvent

_ALIKE = 5e-4  # losses apart by less are the same
_OF_STEPS = {
    "loss": Figure("Loss", "step", "loss", "", "nats"),
    "seconds": Figure("Time of a step", "step", "time", "", "s"),
    "rate": Figure("Tokens per second, all ranks", "step", "rate", "", "tokens/s"),
}


def charts_of(
    session: Session, runs: Sequence[Run], specs: Sequence[RunSpec], views: Sequence[RunView]
) -> Iterator[Drawing]:
    """Steps of trainings, and figures that the programs share, with a colour a run."""
    steps = [_steps(session, run) if spec.options is None else [] for run, spec in zip(runs, specs, strict=True)]
    for name, figure in _OF_STEPS.items():
        points = [
            Point(name, f"Run {run.id}", each.step, value)
            for run, mine in zip(runs, steps, strict=True)
            for each in mine
            if (value := _of_step(name, each)) is not None
        ]
        yield from _drawn(name, figure, points)
    figures: dict[str, Figure] = {}
    for spec in specs:
        figures |= spec.options.figures if spec.options is not None else {}
    for name, figure in figures.items():
        points = [
            Point(name, f"Run {run.id}, {point.name}", point.x, point.y)
            for run, view in zip(runs, views, strict=True)
            for point in view.points
            if point.figure == name
        ]
        yield from _drawn(name, figure, points)


def _steps(session: Session, run: Run) -> list[StepEvent]:
    if findings.is_hidden(run):
        return []
    found: dict[int, StepEvent] = {}
    for event in results.every_event(session, run.id):
        if isinstance(event, StepEvent):
            found[event.step] = event
        elif results.is_new_start(event):
            found = {}
    return list(found.values())


def _of_step(name: str, event: StepEvent) -> float | None:
    """Steps that a probe looked at are slower, and the first one is: their times are no rate."""
    if name == "loss":
        return event.loss
    if event.probed or event.step == 1:
        return None
    return event.seconds if name == "seconds" else event.tokens_per_second


def _drawn(name: str, figure: Figure, points: list[Point]) -> Iterator[Drawing]:
    drawing = plots.draw_figure(name, figure, points, (), plots.BESIDE)
    if drawing is not None:
        yield replace(drawing, finding=_says(name, points))


def _says(name: str, points: Sequence[Point]) -> str:
    """Of losses whether they are the same; of times how far they scatter, for a ratio within that says nothing."""
    by_run: dict[str, dict[float, float]] = {}
    for point in points:
        by_run.setdefault(point.name, {})[point.x] = point.y
    if name == "loss" and len(by_run) > 1:
        shared = set.intersection(*(set(each) for each in by_run.values()))
        worst = max((_spread([each[x] for each in by_run.values()]) for x in shared), default=1.0)
        return f"The same at all {len(shared)} steps they share." if worst < _ALIKE else ""
    if name == "seconds":
        middle = (
            f"{run} {digits(quarters[0] / step.size, 3)} to {digits(quarters[2] / step.size, 3)} {step.unit}"
            for run, each in by_run.items()
            if len(each) > 3
            and (quarters := quantiles(each.values(), n=4))
            and (step := step_for(quarters[2], "seconds"))
        )
        said = ", ".join(middle)
        return f"The middle half: {said}." if said else ""
    return ""


def _spread(values: Sequence[float]) -> float:
    return (max(values) - min(values)) / max(abs(max(values)), 1e-12)
