"""How long a run will wait, from what earlier runs took; and what it waited for."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.lab import presence, queries
from app.lab.models import ACTIVE, WAITING, Run
from app.lab.view import RunView, Wait
from labs.spec import RunSpec

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


@dataclass(frozen=True)
class Planned:
    """What comes before the first step, in its turn: `seconds` it took, None until it is over. `ranks` are those that
    are known to be in, of `of_ranks`; both 0 where ranks are not counted."""

    doing: str
    says: str
    seconds: float | None
    is_now: bool = False
    ranks: int = 0
    of_ranks: int = 0


def plan_of(session: Session, run: Run, spec: RunSpec, view: RunView) -> tuple[Planned, ...]:
    """Everything until a run's first step, what is over and under way with what it was, the rest as it will be."""
    if run.status not in (WAITING, *ACTIVE):
        return ()
    ranks = spec.parallel.world_size
    took = list(waits_of(run, view))
    planned = []
    for verbs, doing, says in _plan(spec, _ahead(session, run)):
        mine = [each for each in took if each.doing.split()[0] in verbs]
        took = [each for each in took if each not in mine]
        if not mine:
            planned.append(Planned(doing, says, None))
            continue
        is_over = all(each.seconds is not None for each in mine)
        planned.append(Planned(mine[-1].doing, says, sum(each.seconds or 0.0 for each in mine) if is_over else None))
    now = _now(run, view, planned)
    done = [replace(each, seconds=0.0) if i < now and each.seconds is None else each for i, each in enumerate(planned)]
    return tuple(
        replace(
            each,
            is_now=i == now,
            ranks=ranks if each.doing.startswith("joining") and i < now else 0,
            of_ranks=ranks if each.doing.startswith("joining") else 0,
        )
        for i, each in enumerate(done)
    )


def _plan(spec: RunSpec, ahead: str) -> Iterator[tuple[tuple[str, ...], str, str]]:
    """What a run does until its first step: the verbs it says that with, its words before it does, and why."""
    ranks = spec.parallel.world_size
    called = f"{ranks} {'ranks' if ranks > 1 else 'rank'}"
    yield ("waiting",), "waiting for a worker", ahead
    yield ("starting", "loading"), f"starting {called}", "one process each"
    yield ("joining",), f"joining {called}", f"each waits until all {ranks} are in" if ranks > 1 else ""
    if spec.program == "train":
        yield ("building",), "building the model", "every rank its part of it"
        yield ("computing",), "computing the first step", "allocates, and is slower than the rest"


def _now(run: Run, view: RunView, planned: Sequence[Planned]) -> int:
    """Which of them is under way; behind the last once there was a step."""
    if run.status == WAITING:
        return 0
    if view.steps_done or view.points or run.status == "running":  # what was predicted is not in the view yet
        return len(planned)
    begun = [i for i, each in enumerate(planned) if each.seconds is not None]
    under_way = {wait.doing for wait in waits_of(run, view) if wait.seconds is None}
    return next(
        (i for i, each in enumerate(planned) if each.doing in under_way), min(len(planned), max(begun, default=0) + 1)
    )


def _ahead(session: Session, run: Run) -> str:
    """Who is before a waiting run, and how far that is."""
    if run.status != WAITING:
        return ""
    ahead = next((i for i, other in enumerate(queries.list_queue(session)) if other.id == run.id), 0)
    active = queries.list_active(session)
    said = [f"{ahead} waiting before it"] if ahead else []
    for other in active[:1]:
        steps = (other.spec.get("training") or {}).get("steps")
        said.append(f"run {other.id} is at step {other.steps_done} of {steps}" if steps else f"run {other.id} is on")
    return ", ".join(said)


def waits_of(run: Run, view: RunView) -> tuple[Wait, ...]:
    """What a run waited for until its first step, the worker first; the last one has no end while it is under way."""
    if run.started_at is None:
        return (Wait("waiting for a worker", 0.0, None),) if run.status == WAITING else ()
    submitted = datetime.fromisoformat(run.origin["created_at"]) if run.origin else run.created_at
    queued = (run.started_at - submitted).total_seconds()
    until = view.waits[0].began if view.waits else None
    every = (Wait("waiting for a worker", -queued, 0.0), Wait("starting the ranks", 0.0, until), *view.waits)
    return tuple(each for each in every if each.seconds is None or each.seconds >= _SHORTEST_SECONDS)
