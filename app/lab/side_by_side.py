"""Up to four runs beside each other: charts on one axis, what differs in their specs and in what they came to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy.orm import Session

from app.content.catalogue import Catalogue
from app.content.diagrams.drawing import Drawing
from app.core.errors import DomainError, Violation
from app.lab import findings, plots, results
from app.lab.film import draw_step, step_of
from app.lab.folds import Folds
from app.lab.forms import called, choice_called
from app.lab.listing import MOST_COMPARED, RunRow, row_of
from app.lab.models import Run
from app.lab.quantities import quantities_of
from app.lab.reading import find_run
from app.lab.view import RunView
from app.theory.lab_runs import Point
from app.units import value_text
from labs.spec import Figure, Quantity, RunSpec
from labs.spec.events import StepEvent

_ALIKE = 5e-4  # apart by less, two measurements are the same
_OF_STEPS = {
    "loss": Figure("Loss", "step", "loss", "", "nats"),
    "seconds": Figure("Time of a step", "step", "time", "", "s"),
    "rate": Figure("Tokens per second, all ranks", "step", "rate", "", "tokens/s"),
}


@dataclass(frozen=True)
class Cell:
    """What one run has in a row: measured, theory's, and how it stands to the first run; `part` and `tick` are where
    the two end on the row's axis, in percent."""

    text: str
    theory: str = ""
    ratio: str = ""
    part: float | None = None
    tick: float | None = None


@dataclass(frozen=True)
class Row:
    """A quantity or a field of the spec, with a cell for each run. `path` is where the field stands in the spec."""

    title: str
    cells: tuple[Cell, ...]
    path: str = ""


@dataclass(frozen=True)
class SidePage:
    """Everything a comparison shows. `finding` is the largest difference in what was measured, empty where there is
    none; `same` counts the fields that all specs have alike."""

    finding: str
    runs: tuple[RunRow, ...]
    quantities: tuple[Row, ...]
    spec: tuple[Row, ...]
    same: int
    charts: tuple[Drawing, ...]
    timelines: tuple[Drawing, ...]
    seconds: float


def side_by_side(
    session: Session, learner_id: int, content: Catalogue, folds: Folds, run_ids: Sequence[int]
) -> SidePage:
    """Raises NotFound, and DomainError for more than may be compared."""
    asked = tuple(dict.fromkeys(run_ids))
    if len(asked) > MOST_COMPARED:
        message = f"{len(asked)} runs do not fit beside each other."
        raise DomainError("Not compared.", [Violation("run", len(asked), message, f"1 to {MOST_COMPARED} runs")])
    runs = [find_run(session, learner_id, each) for each in asked]
    specs = [RunSpec.model_validate(run.spec) for run in runs]
    views = [_shown(run, folds.view(session, run)) for run in runs]
    differing, same = _spec_rows([spec.model_dump(mode="json") for spec in specs])
    steps = [step_of(spec, view.spans, view.details) for spec, view in zip(specs, views, strict=True)]
    seconds = max((step.seconds for step in steps if step), default=0.0)
    return SidePage(
        finding=_finding(runs, specs),
        runs=tuple(row_of(run, content) for run in runs),
        quantities=tuple(_quantity_rows(runs, specs)),
        spec=tuple(differing),
        same=same,
        charts=tuple(_charts(session, runs, specs, views)),
        timelines=tuple(
            replace(draw_step(step, f"run-{run.id}", seconds), title=f"Run {run.id}")
            for run, step in zip(runs, steps, strict=True)
            if step
        ),
        seconds=seconds,
    )


def _shown(run: Run, view: RunView) -> RunView:
    """What may be seen of it: nothing that was predicted, before the end."""
    return findings.without_numbers(view) if findings.is_hidden(run) else view


# --- tables


def _quantity_rows(runs: Sequence[Run], specs: Sequence[RunSpec]) -> Iterator[Row]:
    """What any of them measured or theory knows, in the order of the first that has it."""
    for name, quantity in _known(specs).items():
        measured = [(run.result or {}).get(name) for run in runs]
        theory = [None if findings.is_hidden(run) else run.theory.get(name) for run in runs]
        if not any(value is not None for value in (*measured, *theory)):
            continue
        most = max(value for value in (*measured, *theory) if value is not None) or 1.0
        cells = (
            Cell(
                _text(value, quantity),
                _text(expected, quantity),
                _ratio(value, measured[0]) if index else "",
                None if value is None else 100 * value / most,
                None if expected is None else 100 * expected / most,
            )
            for index, (value, expected) in enumerate(zip(measured, theory, strict=True))
        )
        yield Row(quantity.title, tuple(cells))


def _known(specs: Sequence[RunSpec]) -> dict[str, Quantity]:
    """The quantities that any of them has, in the order of the first that has it."""
    known: dict[str, Quantity] = {}
    for spec in specs:
        known |= {name: each for name, each in quantities_of(spec).items() if name not in known}
    return known


def _finding(runs: Sequence[Run], specs: Sequence[RunSpec]) -> str:
    """The quantity in which those that measured it are furthest apart, the first of those alike, and how far."""
    best, said = 1 + _ALIKE, ""
    for name, quantity in _known(specs).items():
        measured = {run.id: value for run in runs if (value := (run.result or {}).get(name))}
        if len(measured) < 2:
            continue
        most, least = max(measured, key=measured.__getitem__), min(measured, key=measured.__getitem__)
        ratio = measured[most] / measured[least]
        if ratio > best * (1 + _ALIKE):
            best, said = ratio, f"{quantity.title}: run {most} has {ratio:.3g} times that of run {least}"
    return said


def _text(value: float | None, quantity: Quantity) -> str:
    return "–" if value is None else value_text(value, quantity.dimension)


def _ratio(value: float | None, first: float | None) -> str:
    """Times the first run's; empty where either is nothing."""
    if not value or not first:
        return ""
    ratio = value / first
    return "the same" if abs(ratio - 1) < _ALIKE else f"× {ratio:.3g}"


def _spec_rows(specs: Sequence[Mapping[str, Any]]) -> tuple[list[Row], int]:
    """Fields that not all have alike, and how many all do."""
    flat = [dict(_leaves(spec)) for spec in specs]
    fields = dict.fromkeys(field for each in flat for field in each)
    rows = [
        Row(
            called(field),
            tuple(Cell(_written(each[field], field) if field in each else "–") for each in flat),
            field,
        )
        for field in fields
        if any(each.get(field) != flat[0].get(field) or field not in each for each in flat)
    ]
    return rows, len(fields) - len(rows)


def _leaves(data: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in data.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _written(value: object, field: str = "") -> str:
    """A value as the form of own runs calls it; what the form does not ask for, as it stands."""
    if (choice := choice_called(field, value)) is not None:
        return choice.split(",")[0]
    if isinstance(value, list | tuple):
        return ", ".join(map(_written, value)) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else f"{value:,}" if isinstance(value, int) else str(value)


# --- pictures


def _charts(
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
    drawing = plots.draw_figure(name, figure, points, ())
    if drawing is not None:
        yield replace(drawing, finding="All on one axis.")
