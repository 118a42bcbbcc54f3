"""What a learner predicted of runs, and how it came out: for rooms that sum up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from pydantic import ValidationError
from sqlalchemy.orm import Session

from app.content.catalogue import Catalogue
from app.lab import findings, queries
from app.lab.naming import title
from app.lab.run_page import compared
from app.lab.view import RunView
from app.reveal.comparison import Comparison
from app.reveal.meter import Meter, finding
from labs.spec import RunSpec


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
    the first that was predicted."""

    run_id: int
    name: str
    title: str
    ended_at: datetime
    meter: Meter
    guesses: tuple[Guess, ...]


def list_predicted(session: Session, learner_id: int, content: Catalogue) -> list[Predicted]:
    """Every finished run with a prediction that was measured, newest first."""
    return list(_predicted(session, learner_id, content))


def _predicted(session: Session, learner_id: int, content: Catalogue) -> Iterator[Predicted]:
    for run in reversed(queries.list_all_runs(session, learner_id)):
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
        yield Predicted(run.id, name, says, run.ended_at, finding(answered) or answered[0], guesses)


def _guess(row: Comparison) -> Guess:
    assert row.predicted is not None
    assert row.measured is not None
    ratio = row.predicted / row.measured if row.measured else 1.0  # both are zero then
    return Guess(row.dimension, ratio, row.kept_confidence)
