"""What the lab has done lately and what waits, in figures for a monitoring system."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.lab import queries
from app.lab.models import WAITING, Run

_LAST_RUNS = 200  # of which waits are told
_DAY = timedelta(days=1)


@dataclass(frozen=True)
class Activity:
    """`waits_seconds` are of the runs that were taken last; `rank_seconds` of those that ended within a day, by how;
    `behind_seconds` is how long ago the run under way was heard of that was heard of longest ago."""

    waiting: int
    longest_wait_seconds: float
    waits_seconds: tuple[float, ...]
    rank_seconds: Mapping[str, float]
    behind_seconds: float


def activity(session: Session, now: datetime) -> Activity:
    oldest = session.scalar(select(func.min(Run.created_at)).where(Run.status == WAITING))
    taken = select(Run.created_at, Run.started_at).where(Run.started_at.is_not(None), queries.IS_OWN)
    waits = session.execute(taken.order_by(Run.id.desc()).limit(_LAST_RUNS)).all()
    active = queries.list_active(session)
    return Activity(
        waiting=session.scalar(select(func.count(Run.id)).where(Run.status == WAITING)) or 0,
        longest_wait_seconds=(now - oldest).total_seconds() if oldest else 0.0,
        waits_seconds=tuple(sorted((started - created).total_seconds() for created, started in waits if started)),
        rank_seconds=_rank_seconds(session, now),
        behind_seconds=max(
            ((now - (run.heartbeat_at or run.created_at)).total_seconds() for run in active), default=0.0
        ),
    )


def _rank_seconds(session: Session, now: datetime) -> dict[str, float]:
    ended = select(Run.status, Run.spec, Run.started_at, Run.ended_at).where(
        Run.ended_at > now - _DAY, Run.started_at.is_not(None), queries.IS_OWN
    )
    found: dict[str, float] = {}
    for status, spec, started, ended_at in session.execute(ended):
        found[status] = found.get(status, 0.0) + _ranks(spec) * (ended_at - started).total_seconds()
    return found


def _ranks(spec: Mapping[str, Any]) -> int:
    """By the stored spec, also of another release."""
    ranks = 1
    for axis in ("data", "tensor", "pipeline", "context"):
        ranks *= int(spec.get("parallel", {}).get(axis, 1))
    return ranks
