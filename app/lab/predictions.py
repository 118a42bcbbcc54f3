"""What a learner predicted of runs, how it came out, and what that proves: for rooms that sum up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from pydantic import ValidationError
from sqlalchemy.orm import Session

from app.content.catalogue import Catalogue
from app.content.evidence import Evidence
from app.lab import findings, queries
from app.lab.comparison import compare
from app.lab.cures import find_cures
from app.lab.models import Run
from app.lab.naming import title
from app.lab.quantities import dimension_of
from app.lab.run_page import compared
from app.lab.view import RunView
from app.reveal.comparison import Comparison
from app.reveal.meter import Meter, finding
from labs.spec import Quantity, RunSpec


@dataclass(frozen=True)
class Guess:
    """One quantity that was predicted: `ratio` is the prediction over what was measured, `is_inside` whether that lay
    within what the learner was sure of, None where they did not say."""

    dimension: str
    ratio: float
    is_inside: bool | None


@dataclass(frozen=True)
class Predicted:
    """A finished run that was predicted. `meter` is the quantity its title speaks of: the one whose gap says most, else
    the first that was predicted. `cures` are the cards on what a number lacks by its name, none where none has one."""

    run_id: int
    experiment_id: str | None
    name: str
    title: str
    ended_at: datetime
    meter: Meter
    guesses: tuple[Guess, ...]
    cures: tuple[str, ...] = ()


def list_predicted(session: Session, learner_id: int, content: Catalogue) -> list[Predicted]:
    """Every finished run with a prediction that was measured, newest first."""
    return list(_predicted(reversed(queries.list_all_runs(session, learner_id)), content))


def list_newest(session: Session, learner_id: int, content: Catalogue, since: datetime) -> list[Predicted]:
    """The same of each experiment alone that was predicted since then: its newest."""
    newest = {
        run.experiment_id: run
        for run in queries.list_all_runs(session, learner_id)
        if run.experiment_id in content.experiments
        and run.prediction
        and run.status == "finished"
        and run.ended_at is not None
        and run.ended_at >= since
    }
    return list(_predicted(newest.values(), content))


def _predicted(runs: Iterable[Run], content: Catalogue) -> Iterator[Predicted]:
    for run in runs:
        if run.status != "finished" or not run.prediction or run.ended_at is None:
            continue
        try:
            spec = RunSpec.model_validate(run.spec)
        except ValidationError:  # of another release
            continue
        item = content.experiments.get(run.experiment_id or "")
        meters = findings.meters_of(run, spec, item, RunView(), compared(run, item)[0])
        answered = [meter for meter in meters if meter.row.off_by is not None]
        if not answered:
            continue
        name = f"{item.id}, {title(spec)}" if item else title(spec)
        says, _ = findings.headings(run, meters)
        guesses = tuple(_guess(meter.row) for meter in answered)
        cures = find_cures(content, spec, item, meters).named
        yield Predicted(
            run.id, run.experiment_id, name, says, run.ended_at, finding(answered) or answered[0], guesses, cures
        )


def _guess(row: Comparison) -> Guess:
    assert row.predicted is not None
    assert row.measured is not None
    ratio = row.predicted / row.measured if row.measured else 1.0  # both are zero then
    return Guess(row.dimension, ratio, row.kept_confidence)


def list_evidence(session: Session, learner_id: int) -> list[Evidence]:
    """Every finished run of an experiment: the share of what was predicted that came out so."""
    return [
        Evidence("run", run.experiment_id, run.ended_at, _foreseen(run))
        for run in queries.list_all_runs(session, learner_id)
        if run.experiment_id is not None and run.status == "finished" and run.ended_at is not None
    ]


def _foreseen(run: Run) -> float | None:
    """None without a prediction, and where nothing of what was predicted was measured."""
    asked = {
        name: Quantity(name, dimension)
        for name in run.prediction or {}
        if (dimension := dimension_of(name)) is not None
    }
    rows = [row for row in compare(asked, run.prediction, run.theory, run.result) if row.measured is not None]
    if not rows:
        return None
    right = [row for row in rows if not row.missed]
    if any(not row.is_near for row in right):  # it may lack something by name all the same: that takes a search
        try:
            meters = findings.meters_of(run, RunSpec.model_validate(run.spec), None, RunView(), right)
            right = [meter.row for meter in meters if not meter.missed]
        except ValidationError:  # of another release: of what its numbers are made is not known any more
            pass
    return len(right) / len(rows)
