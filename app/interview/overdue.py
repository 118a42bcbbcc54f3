"""Whether a sitting waits to be closed or graded: asked every few seconds, without loading what does it."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy.orm import Session

from app.interview import queries


def has_overdue(session: Session, now: datetime) -> bool:
    """Whether there is anything for the sweep: most of the time there is not, and then it needs no content."""
    return bool(queries.list_overdue(session, now) or queries.list_unsettled(session))
