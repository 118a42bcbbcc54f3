"""Runs out of this install and into it: exported as a file, opened from one to look at and compare, let go of again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import PurePath

from sqlalchemy import delete
from sqlalchemy.orm import Session

from app.core.errors import DomainError, Violation
from app.core.texts import storable
from app.lab import queries, results
from app.lab.models import ENDED, Chunk, Run
from app.lab.naming import command_line
from app.lab.predict import theory_record
from app.lab.quantities import quantities_of
from app.lab.reading import find_run
from app.lab.records import RunFailure
from app.lab.run_file import ENDING, Head, ReadRun, RecordedFailure, RecordedRun, measured, write_file
from labs.spec import RunSpec

MOST_OPENED = 100  # of a learner, at once
_EVENTS_A_CHUNK = 500


class StillRuns(DomainError):
    """It has not ended: a part of a run is no run."""

    status = 409
    code = "still-runs"


def export_run(
    session: Session, learner_id: int, run_id: int, release: str, now: datetime
) -> tuple[str, Iterator[bytes]]:
    """A file's name and its pieces. Raises NotFound, and StillRuns for a run that has not ended.

    One that was opened from a file goes out as it came in, of the release it is of.
    """
    run = find_run(session, learner_id, run_id)
    if run.status not in ENDED:
        raise StillRuns(f"Run {run.id} has not ended. Wait for its end, or cancel it.")
    origin = run.origin or {}
    head = Head(rankzero_run=1, release=origin.get("release", release), exported_at=now, run=_recorded(run))
    return f"run-{head.run.id}{ENDING}", write_file(head, results.every_event(session, run.id))


def _recorded(run: Run) -> RecordedRun:
    failure = RunFailure.from_json(run.failure).to_json() if run.failure else None
    fields = {
        name: getattr(run, name)
        for name in RecordedRun.model_fields
        if name not in ("id", "command", "failure", "result", "created_at", "started_at", "ended_at")
    }
    origin = run.origin or {}
    return RecordedRun(
        **fields,
        id=origin.get("run", run.id),
        command=command_line(RunSpec.model_validate(run.spec), run.device),
        result=run.result,
        failure=RecordedFailure.model_validate(failure) if failure else None,
        created_at=origin.get("created_at", run.created_at),
        started_at=run.started_at,
        ended_at=run.ended_at or run.created_at,
    )


def store_opened(session: Session, learner_id: int, name: str, read: ReadRun, now: datetime) -> Run:
    """Keep a run that was read from the file called `name`; the one that is here already where it is the same file.

    Theory is of this release. The result is made again of the ranks' own words; where the file has none of them, only
    numbers that such a run has are taken. Raises DomainError where nothing was measured, or too much is open.
    """
    opened = queries.list_opened(session, learner_id)
    same = next((run for run in opened if (run.origin or {}).get("digest") == read.digest), None)
    if same is not None:
        return same
    if len(opened) >= MOST_OPENED:
        message = f"{MOST_OPENED} runs from files are here already."
        raise DomainError("The run was not opened.", [Violation("file", name[:80], message, "removing one first")])
    told, head = read.head.run, read.head
    run = Run(
        learner_id=learner_id,
        spec=read.spec.model_dump(mode="json"),
        theory=theory_record(read.spec),
        status=told.status,
        phase=storable(told.phase),
        created_at=now,
        started_at=told.started_at,
        ended_at=told.ended_at,
        device=told.device and storable(told.device),
        launch=told.launch and storable(told.launch),
        steps_done=told.steps_done,
        chunks=0,
        name=storable(told.name),
        note=storable(told.note),
        failure=told.failure and RunFailure.from_json(told.failure.model_dump()).to_json(),
        opened_from=storable(PurePath(name).name)[-200:],
        origin={
            "run": told.id,
            "release": storable(head.release),
            "digest": read.digest,
            "created_at": told.created_at.isoformat(),
            "exported_at": head.exported_at.isoformat(),
            "is_of_here": _is_of_here(session, learner_id, told),
        },
    )
    session.add(run)
    session.flush()
    for start in range(0, len(read.events), _EVENTS_A_CHUNK):
        events = [json.loads(line) for line in read.events[start : start + _EVENTS_A_CHUNK]]
        run.chunks += 1
        session.add(Chunk(run_id=run.id, sequence=run.chunks, events=events, created_at=now))
        session.flush()
    if told.status == "finished":
        run.result = _result(session, run, read)
    session.flush()
    return run


def _is_of_here(session: Session, learner_id: int, recorded: RecordedRun) -> bool:
    """Whether it is a run of this very install: it has one of that number, submitted at that moment."""
    mine = queries.find_run(session, learner_id, recorded.id)
    return mine is not None and mine.opened_from is None and mine.created_at == recorded.created_at


def _result(session: Session, run: Run, read: ReadRun) -> dict[str, object]:
    try:
        found = results.summarise(session, run)
    except (ArithmeticError, LookupError, TypeError, ValueError):
        raise _no_result("What its ranks found does not fit together.") from None
    found = found or dict(measured(read.head.run.result, quantities_of(read.spec)))
    if not found:
        raise _no_result("It is said to have finished, and has no result.")
    return found


def _no_result(message: str) -> DomainError:
    return DomainError("The run was not opened.", [Violation("file", "result", message, "the file as it was")])


def remove_opened(session: Session, learner_id: int, run_id: int) -> None:
    """Let go of a run that was opened from a file. Raises NotFound, and DomainError for one of one's own."""
    run = find_run(session, learner_id, run_id)
    if run.opened_from is None:
        message = f"Run {run.id} was carried out here: it is kept."
        raise DomainError("Not removed.", [Violation("run", run.id, message, "a run that was opened from a file")])
    session.execute(delete(Chunk).where(Chunk.run_id == run.id))
    session.delete(run)
    session.flush()
