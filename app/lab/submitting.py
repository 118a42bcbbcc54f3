"""What a learner asks of the queue: a run, and its end."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from sqlalchemy import update
from sqlalchemy.orm import Session

from app.core.errors import DomainError
from app.lab import queries
from app.lab.models import ACTIVE, WAITING, Run
from app.lab.predict import read_prediction, theory_record
from app.lab.reading import find_run
from labs.spec import parse_run_spec

MOST_WAITING_PER_LEARNER = 20


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
    """Queue a run of `spec` (JSON data), its prediction locked. Raises SpecError or DomainError and queues nothing."""
    parsed = parse_run_spec(spec)
    locked = read_prediction(prediction, parsed)
    if queries.count_runs(session, learner_id, [WAITING]) >= MOST_WAITING_PER_LEARNER:
        raise QueueFull(f"{MOST_WAITING_PER_LEARNER} runs are waiting already. Cancel one, or let some finish first.")
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


def cancel_run(session: Session, learner_id: int, run_id: int, now: datetime) -> Run:
    """Ask for a run's end: a waiting one ends now, an active one as soon as its worker sees the flag."""
    run = find_run(session, learner_id, run_id)
    waiting = queries.changed(
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
