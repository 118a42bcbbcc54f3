"""The learner's runs in lines: what each is called and came to, narrowed by words and by where it stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy.orm import Session

from app.content.catalogue import Catalogue
from app.content.schemas import Experiment
from app.core.errors import DomainError, Violation
from app.lab import findings, queries
from app.lab.models import ACTIVE, ENDED, WAITING, Run
from app.lab.naming import describe, title
from app.lab.reading import find_run
from app.lab.records import RunFailure
from app.lab.run_page import compared
from app.lab.view import RunView
from app.reveal.comparison import times
from app.reveal.meter import Meter, finding
from app.words import capital
from labs.spec import RunSpec

SEARCHED = 500  # of the newest: what they are called is made of their specs, so each is read
PER_PAGE = 30
MOST_COMPARED = 4
MOST_NAME, MOST_NOTE = 80, 2000
STANDINGS = {
    "": ("Any", (WAITING, *ACTIVE, *ENDED)),
    "under-way": ("Under way", (WAITING, *ACTIVE)),
    "finished": ("Finished", ("finished",)),
    "failed": ("Failed", ("failed",)),
    "cancelled": ("Cancelled", ("cancelled",)),
    "expired": ("Expired", ("expired",)),
}


@dataclass(frozen=True)
class RunRow:
    """A run of one's own, in a line."""

    run: Run
    name: str
    said: str
    summary: str
    css: str  # of its pill: a finished run whose prediction missed is not shown as well done


@dataclass(frozen=True)
class RunsPage:
    """A page of the list, and by what it is narrowed. `matching` counts all that match among the newest, `in_all` those
    of that standing, `total` every run."""

    rows: Sequence[RunRow]
    words: str
    standing: str
    number: int
    pages: int
    matching: int
    searched: int
    in_all: int
    total: int
    predicted: int  # of those searched, with a prediction that was locked first


def runs_page(
    session: Session, learner_id: int, content: Catalogue, words: str, standing: str, number: int
) -> RunsPage:
    """Runs whose number, name, note, title or experiment has all of `words`. Raises DomainError."""
    if standing not in STANDINGS:
        message = f"{standing[:40]!r} is nowhere a run stands."
        accepted = ", ".join(filter(None, STANDINGS))
        raise DomainError("The list cannot be narrowed so.", [Violation("standing", standing[:40], message, accepted)])
    newest = queries.list_runs(session, learner_id, SEARCHED, STANDINGS[standing][1])
    asked = words.casefold().split()
    matching = [run for run in newest if all(each in _said_of(run, content) for each in asked)] if asked else newest
    pages = max(1, -(-len(matching) // PER_PAGE))
    number = min(number, pages)
    shown = matching[(number - 1) * PER_PAGE : number * PER_PAGE]
    return RunsPage(
        rows=[row_of(run, content) for run in shown],
        words=words,
        standing=standing,
        number=number,
        pages=pages,
        matching=len(matching),
        searched=len(newest),
        in_all=queries.count_runs(session, learner_id, STANDINGS[standing][1]),
        total=queries.count_runs(session, learner_id, STANDINGS[""][1]),
        predicted=sum(bool(run.prediction) for run in newest),
    )


def _said_of(run: Run, content: Catalogue) -> str:
    """Everything a run may be found by."""
    spec, item = RunSpec.model_validate(run.spec), content.experiments.get(run.experiment_id or "")
    parts = (f"run {run.id}", run.name, run.note, _name(run, spec, item), describe(spec), item.title if item else "")
    return " ".join((*parts, spec.program, run.status, run.device or "")).casefold()


def row_of(run: Run, content: Catalogue) -> RunRow:
    spec = RunSpec.model_validate(run.spec)
    item = content.experiments.get(run.experiment_id or "")
    said = {
        WAITING: "Queued",
        "starting": "Starting",
        "running": f"Step {run.steps_done} of {spec.training.steps}" if spec.program == "train" else "Measuring",
        "finished": _lacked(run, item) or off(run, item) or "Finished",
        "failed": capital(RunFailure.from_json(run.failure or {}).cause),
        "cancelled": "Cancelled",
        "expired": "Expired",
    }[run.status]
    return RunRow(run, _name(run, spec, item), said, describe(spec), _css(run, item))


def _css(run: Run, item: Experiment | None) -> str:
    if run.status == "starting":
        return "running"
    return "missed" if run.status == "finished" and any(meter.missed for meter in _meters(run, item)) else run.status


def _name(run: Run, spec: RunSpec, item: Experiment | None) -> str:
    """What the learner calls it; else what it is."""
    return run.name or (f"{item.id}, {title(spec)}" if item else title(spec))


def name_run(session: Session, learner_id: int, run_id: int, name: str, note: str) -> Run:
    """Call a run `name` and note something of it; empty takes either back. Raises NotFound and DomainError."""
    run = find_run(session, learner_id, run_id)
    if run.opened_from is not None:
        message = f"Run {run.id} was opened from a file: it stays as it was there."
        raise DomainError("Not kept.", [Violation("run", run.id, message, "a run of your own")])
    name, note = " ".join(name.split()), note.replace("\r\n", "\n").strip()
    violations = [
        Violation(field, f"{text[:40]}…", f"{len(text):,} characters are too many.", f"up to {most:,}")
        for field, text, most in (("name", name, MOST_NAME), ("note", note, MOST_NOTE))
        if len(text) > most
    ]
    if violations:
        raise DomainError("Not kept: the name and the note are as they were.", violations)
    run.name, run.note = name, note
    session.flush()
    return run


def off(run: Run, item: Experiment | None) -> str | None:
    """How far off the worst prediction was; None without one."""
    apart = [row.off_by for row in compared(run, item)[0] if row.off_by is not None]
    if not apart:
        return None
    return "exact" if max(apart) < 1.005 else f"{times(max(apart))} × off"


def _lacked(run: Run, item: Experiment | None) -> str | None:
    """The term that the prediction left out; None where none has a name."""
    far = finding(_meters(run, item))
    return f"Left out: {far.gap.label}" if far and far.gap and far.gap.missing else None


def _meters(run: Run, item: Experiment | None) -> list[Meter]:
    return findings.meters_of(run, RunSpec.model_validate(run.spec), item, RunView(), compared(run, item)[0])
