"""How long a run will wait, from what earlier runs took; and what it waited for."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.lab import presence, queries
from app.lab.models import WAITING, Run
from app.lab.view import RunView, Wait

_LOOKED_AT = 200  # of the runs that finished last
_SHORTEST_SECONDS = 0.05  # a wait that is told of: shorter ones round to nothing


@dataclass(frozen=True)
class Durations:
    """Seconds that finished runs took, by what they were; the newest first."""

    of_spec: Mapping[str, Sequence[float]]
    of_kind: Mapping[str, Sequence[float]]
    of_all: Sequence[float]

    def expected(self, spec: Mapping[str, Any]) -> float | None:
        """What a run of `spec` is expected to take: the median of the same runs, else of those of its program on as
        many ranks, else of all. None before the first has finished."""
        for found in (self.of_spec.get(_key(spec)), self.of_kind.get(_kind(spec)), self.of_all):
            if found:
                return statistics.median(found)
        return None


def measured_durations(session: Session) -> Durations:
    """From the runs of this install that finished last."""
    rows = session.execute(
        select(Run.spec, Run.started_at, Run.ended_at)
        .where(Run.status == "finished", Run.started_at.is_not(None), Run.ended_at.is_not(None), queries.IS_OWN)
        .order_by(Run.id.desc())
        .limit(_LOOKED_AT)
    ).all()
    of_spec: dict[str, list[float]] = {}
    of_kind: dict[str, list[float]] = {}
    of_all: list[float] = []
    for spec, started, ended in rows:
        seconds = (ended - started).total_seconds()
        of_spec.setdefault(_key(spec), []).append(seconds)
        of_kind.setdefault(_kind(spec), []).append(seconds)
        of_all.append(seconds)
    return Durations(of_spec, of_kind, of_all)


def expected_waits(session: Session, now: datetime) -> dict[int, float | None]:
    """Seconds until each waiting run starts, by run: runs go, in their order, to whichever worker is free first. None
    where nothing was measured yet, or nobody is there to take runs."""
    queue = queries.list_queue(session)
    if not queue:
        return {}
    durations = measured_durations(session)
    active = queries.list_active(session)
    workers = len(presence.workers_taking_runs(session, now))
    free_in = sorted(_remaining(durations, run, now) for run in active)[-workers:] if workers else []
    free_in = [0.0] * (workers - len(free_in)) + free_in
    waits: dict[int, float | None] = {}
    for run in queue:
        takes = durations.expected(run.spec)
        if not free_in or takes is None:
            waits[run.id] = None
            continue
        free_in.sort()
        waits[run.id] = free_in[0]
        free_in[0] += takes
    return waits


def _remaining(durations: Durations, run: Run, now: datetime) -> float:
    expected = durations.expected(run.spec)
    if expected is None or run.started_at is None:
        return 0.0
    return max(0.0, expected - (now - run.started_at).total_seconds())


def _key(spec: Mapping[str, Any]) -> str:
    return repr(sorted((name, repr(value)) for name, value in spec.items()))


def _kind(spec: Mapping[str, Any]) -> str:
    parallel = spec.get("parallel", {})
    ranks = [parallel.get(name, 1) for name in ("data", "tensor", "pipeline", "context")]
    return f"{spec.get('program')} {ranks}"


def waits_of(run: Run, view: RunView) -> tuple[Wait, ...]:
    """What a run waited for until its first step, the worker first; the last one has no end while it is under way."""
    if run.started_at is None:
        return (Wait("waiting for a worker", 0.0, None),) if run.status == WAITING else ()
    submitted = datetime.fromisoformat(run.origin["created_at"]) if run.origin else run.created_at
    queued = (run.started_at - submitted).total_seconds()
    until = view.waits[0].began if view.waits else None
    every = (Wait("waiting for a worker", -queued, 0.0), Wait("starting the ranks", 0.0, until), *view.waits)
    return tuple(each for each in every if each.seconds is None or each.seconds >= _SHORTEST_SECONDS)
