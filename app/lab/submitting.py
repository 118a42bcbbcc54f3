"""What a learner asks of the queue: a run, and its end."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from sqlalchemy import update
from sqlalchemy.orm import Session

from app.core.errors import DomainError
from app.core.leases import changed
from app.core.limits import limits_of
from app.lab import queries
from app.lab.models import ACTIVE, WAITING, Run
from app.lab.predict import read_prediction, theory_record, unreadable
from app.lab.reading import find_run
from app.lab.takers import here
from labs.spec import RunSpec, SpecError, Violation

DAY = timedelta(days=1)


class QueueFull(DomainError):
    """The learner has enough runs waiting."""

    status = 429
    code = "queue-full"


def submit_run(
    session: Session,
    learner_id: int,
    spec: object,
    prediction: Mapping[str, object] | None,
    now: datetime,
    experiment_id: str | None = None,
) -> Run:
    """Queue a run of `spec` (JSON data), no larger than one of the workers takes, and over no more hosts than one where
    none has several; its prediction locked. Raises SpecError or DomainError and queues nothing."""
    try:
        parsed = here(session, now).read(spec)
        if too_long := _check_steps(session, parsed):
            raise SpecError(too_long)
    except SpecError as error:
        raise SpecError([*error.violations, *unreadable(prediction)]) from None
    locked = read_prediction(prediction, parsed)
    _check_queue(session, learner_id, now)
    run = Run(
        learner_id=learner_id,
        experiment_id=experiment_id,
        spec=parsed.model_dump(mode="json"),
        prediction=locked and {name: each.to_json() for name, each in locked.items()},
        theory=theory_record(parsed),
        status=WAITING,
        created_at=now,
    )
    session.add(run)
    session.flush()
    return run


def _check_steps(session: Session, spec: RunSpec) -> list[Violation]:
    """That a run has no more steps than the operator of this install allows."""
    limits, steps = limits_of(session), spec.training.steps
    if spec.options is not None or steps <= limits.run_steps:
        return []
    message = f"{steps:,} steps are more than a run may have here."
    return [Violation("training.steps", steps, message, f"1 to {limits.run_steps:,}")]


def _check_queue(session: Session, learner_id: int, now: datetime) -> None:
    """That the operator of this install allows one more run. Raises QueueFull."""
    limits = limits_of(session)
    if queries.count_runs(session, learner_id, [WAITING]) >= limits.runs_waiting:
        are = "run is" if limits.runs_waiting == 1 else "runs are"
        raise QueueFull(f"{limits.runs_waiting} {are} waiting already. Cancel one, or let some finish first.")
    if limits.runs_a_day and queries.count_runs_since(session, learner_id, now - DAY) >= limits.runs_a_day:
        raise QueueFull(f"{limits.runs_a_day} runs were started in 24 hours; no more may be here. Come back later.")


def cancel_run(session: Session, learner_id: int, run_id: int, now: datetime) -> Run:
    """Ask for a run's end: a waiting one ends now, an active one as soon as its worker sees the flag."""
    run = find_run(session, learner_id, run_id)
    waiting = changed(
        session.execute(
            update(Run)
            .where(Run.id == run_id, Run.status == WAITING)
            .values(status="cancelled", phase="Cancelled while waiting", cancel_requested_at=now, ended_at=now)
        )
    )
    if not waiting:
        session.execute(
            update(Run)
            .where(Run.id == run_id, Run.status.in_(ACTIVE), Run.cancel_requested_at.is_(None))
            .values(cancel_requested_at=now)
        )
    session.refresh(run)
    return run
