"""Runs to look at: one, and those under way."""

from __future__ import annotations

from sqlalchemy.orm import Session

from app.core.errors import NotFound
from app.core.records import as_record
from app.lab import queries
from app.lab.models import ACTIVE, ENDED, WAITING, Run


def find_run(session: Session, learner_id: int, run_id: int) -> Run:
    """Raises NotFound."""
    run = queries.find_run(session, learner_id, run_id)
    if run is None:
        raise _no_run(run_id)
    return run


def check_run(session: Session, learner_id: int, run_id: int) -> None:
    """Raises NotFound."""
    if not queries.has_run(session, learner_id, run_id):
        raise _no_run(run_id)


def _no_run(run_id: int) -> NotFound:
    return NotFound(f"There is no run {run_id}.")


def queue_position(session: Session, run: Run) -> int | None:
    """How many runs are taken before this one waiting run; None once it waits no more."""
    if run.status != WAITING:
        return None
    return next((i for i, other in enumerate(queries.list_queue(session)) if other.id == run.id), None)


def count_active(session: Session, learner_id: int) -> int:
    return queries.count_runs(session, learner_id, [WAITING, *ACTIVE])


def list_under_way(session: Session, learner_id: int) -> list[Run]:
    """The learner's runs that have not ended."""
    return [run for run in queries.list_runs(session, learner_id, 50) if run.status not in ENDED]


def list_records(session: Session, learner_id: int) -> list[dict[str, object]]:
    """Runs with prediction, theory and result as an export holds them; their events stay in the database."""
    return [
        as_record("run", run, run.created_at, without=("lease",)) for run in queries.list_all_runs(session, learner_id)
    ]


def count_by_status(session: Session) -> dict[str, int]:
    """All runs, by status."""
    return queries.count_by_status(session)
