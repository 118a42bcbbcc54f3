"""Reading runs, their chunks and the workers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Row, bindparam, func, select
from sqlalchemy.orm import Session, aliased

from app.lab.models import ACTIVE, WAITING, Chunk, Run, Sweep, WorkerPresence


def find_run(session: Session, learner_id: int, run_id: int) -> Run | None:
    return session.scalar(select(Run).where(Run.id == run_id, Run.learner_id == learner_id))


def has_run(session: Session, learner_id: int, run_id: int) -> bool:
    """Whether there is such a run, without reading it: a crowd of viewers asks at once."""
    return session.scalar(select(Run.id).where(Run.id == run_id, Run.learner_id == learner_id)) is not None


# What was opened from a file ran elsewhere: it is looked at, and is no evidence, no measurement of this machine and no
# use of it.
IS_OWN = Run.opened_from.is_(None)
# Every page counts the runs under way: to put this together again takes longer than to ask it.
_COUNT = select(func.count(Run.id)).where(
    Run.learner_id == bindparam("learner"), Run.status.in_(bindparam("statuses", expanding=True))
)


def list_runs(session: Session, learner_id: int, limit: int, statuses: Sequence[str] = ()) -> Sequence[Run]:
    """The newest runs first, of any status where none is named; those opened from files among them."""
    query = select(Run).where(Run.learner_id == learner_id).order_by(Run.id.desc()).limit(limit)
    return session.scalars(query.where(Run.status.in_(statuses)) if statuses else query).all()


def list_measured_here(session: Session, learner_id: int, limit: int) -> Sequence[Run]:
    """Finished runs that this install carried out, the newest first."""
    finished = select(Run).where(Run.learner_id == learner_id, Run.status == "finished", IS_OWN)
    return session.scalars(finished.order_by(Run.id.desc()).limit(limit)).all()


def list_results_here(session: Session, learner_id: int, limit: int) -> Sequence[Row[Any]]:
    """Id, spec, result and end of the same runs: a lighter look at many of them."""
    query = select(Run.id, Run.spec, Run.result, Run.ended_at).where(Run.learner_id == learner_id, IS_OWN)
    return session.execute(query.where(Run.status == "finished").order_by(Run.id.desc()).limit(limit)).all()


def list_opened(session: Session, learner_id: int) -> Sequence[Run]:
    """Runs opened from files, the newest first."""
    return session.scalars(select(Run).where(Run.learner_id == learner_id, ~IS_OWN).order_by(Run.id.desc())).all()


def count_runs(session: Session, learner_id: int, statuses: Sequence[str]) -> int:
    return session.scalar(_COUNT, {"learner": learner_id, "statuses": statuses}) or 0


def count_runs_since(session: Session, learner_id: int, since: datetime) -> int:
    """Runs that were submitted since then, whatever became of them."""
    query = select(func.count(Run.id)).where(Run.learner_id == learner_id, Run.created_at > since, IS_OWN)
    return session.scalar(query) or 0


def count_by_status(session: Session) -> dict[str, int]:
    rows = session.execute(select(Run.status, func.count()).where(IS_OWN).group_by(Run.status)).all()
    return {row[0]: row[1] for row in rows}


def list_queue(session: Session) -> Sequence[Run]:
    """Waiting runs in the order they will be taken: every learner's first run before anybody's second, and of those
    first whose last turn is longest ago."""
    turn = func.row_number().over(partition_by=Run.learner_id, order_by=Run.id)
    turns = select(Run.id, turn.label("turn")).where(Run.status == WAITING).subquery()
    began = aliased(Run)
    last = select(began.id).where(began.learner_id == Run.learner_id, began.started_at.is_not(None))
    last_turn = last.order_by(began.id.desc()).limit(1).correlate(Run).scalar_subquery()
    waiting = select(Run).join(turns, turns.c.id == Run.id)
    return session.scalars(waiting.order_by(turns.c.turn, last_turn.nulls_first(), Run.id)).all()


def list_active(session: Session) -> Sequence[Run]:
    return session.scalars(select(Run).where(Run.status.in_(ACTIVE)).order_by(Run.id)).all()


# Asked at every chunk of a run that somebody looks at: put together once, and no objects are made of its rows.
_CHUNKS = (
    select(Chunk.sequence, Chunk.events)
    .where(Chunk.run_id == bindparam("run"), Chunk.sequence > bindparam("after"))
    .order_by(Chunk.sequence)
    .limit(500)
)


def list_chunks(session: Session, run_id: int, after: int) -> Sequence[Row[int, list[Any]]]:
    """A run's chunks behind sequence number `after`, each as its number and events; the first 500 of very many."""
    return session.execute(_CHUNKS, {"run": run_id, "after": after}).all()


def list_workers(session: Session, seen_since: datetime) -> Sequence[WorkerPresence]:
    """Workers that said they were there since `seen_since`."""
    query = select(WorkerPresence).where(WorkerPresence.seen_at >= seen_since).order_by(WorkerPresence.name)
    return session.scalars(query).all()


def find_last_finished(session: Session, learner_id: int, experiment_id: str) -> Run | None:
    query = (
        select(Run)
        .where(Run.learner_id == learner_id, Run.experiment_id == experiment_id, Run.status == "finished", IS_OWN)
        .order_by(Run.id.desc())
        .limit(1)
    )
    return session.scalar(query)


def find_sweep(session: Session, learner_id: int, sweep_id: int) -> Sweep | None:
    return session.scalar(select(Sweep).where(Sweep.id == sweep_id, Sweep.learner_id == learner_id))


def list_sweeps(session: Session, learner_id: int, limit: int) -> Sequence[Sweep]:
    """The newest first."""
    query = select(Sweep).where(Sweep.learner_id == learner_id).order_by(Sweep.id.desc()).limit(limit)
    return session.scalars(query).all()


def list_runs_of_sweep(session: Session, sweep_id: int) -> Sequence[Run]:
    """In the order of its settings."""
    return session.scalars(select(Run).where(Run.sweep_id == sweep_id).order_by(Run.id)).all()


def list_all_runs(session: Session, learner_id: int) -> Sequence[Run]:
    """Every run of this install, oldest first."""
    return session.scalars(select(Run).where(Run.learner_id == learner_id, IS_OWN).order_by(Run.id)).all()
