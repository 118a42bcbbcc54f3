"""What is let go of old runs. Their rows, results and predictions stay: they are evidence."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from app.lab import queries
from app.lab.models import ENDED, Chunk, Run


def forget_events(session: Session, before: datetime, unless_unkept: bool = False) -> int:
    """Delete the events of runs that ended before; how many chunks they were. A file's are let go of with it. With
    `unless_unkept` not of those that are still to be kept elsewhere."""
    old = select(Run.id).where(Run.status.in_(ENDED), Run.ended_at < before, queries.IS_OWN)
    if unless_unkept:
        old = old.where(Run.artifacts.is_not(None))
    return int(getattr(session.execute(delete(Chunk).where(Chunk.run_id.in_(old))), "rowcount", 0))


def list_active_ids(session: Session) -> frozenset[int]:
    """Runs that a worker has in its hands."""
    return frozenset(run.id for run in queries.list_active(session))
