"""A run's life: submitted, claimed by a worker, followed, and ended exactly once."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from pydantic import ValidationError
from sqlalchemy import delete, select, update
from sqlalchemy.engine import CursorResult
from sqlalchemy.orm import Session

from app.content.catalogue import Catalogue
from app.content.evidence import Evidence
from app.content.schemas import Experiment
from app.core.errors import DomainError, NotFound
from app.core.records import as_record
from app.lab import queries, results
from app.lab.models import ACTIVE, ENDED, WAITING, Chunk, Run, WorkerPresence
from app.lab.predict import read_prediction, theory_record
from app.lab.quantities import dimension_of, is_right
from labs.spec import RunSpec, parse_run_spec
from labs.spec.events import Event, StepEvent, to_json

HEARTBEAT_SECONDS = 2.0
STALE_AFTER = timedelta(seconds=20)  # ten missed heartbeats: the worker is gone, not slow
FORGET_WORKERS_AFTER = timedelta(minutes=10)  # one that was only held up announces itself anew
MOST_WAITING_PER_LEARNER = 20


class QueueFull(DomainError):
    """The learner has enough runs waiting."""

    status = 429
    code = "queue-full"


class LeaseLost(DomainError):
    """The worker no longer owns the run it writes to."""

    status = 409
    code = "lease-lost"


@dataclass(frozen=True)
class Claim:
    """A run a worker may work on; the lease is its right to write."""

    run_id: int
    lease: str
    spec: RunSpec
    chunks: int = 0  # written of it when it was claimed


def submit_run(
    session: Session,
    learner_id: int,
    spec: Any,
    prediction: Mapping[str, Any] | None,
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
        prediction=locked,
        theory=theory_record(parsed),
        status=WAITING,
        created_at=now,
    )
    session.add(run)
    session.flush()
    return run


def find_run(session: Session, learner_id: int, run_id: int) -> Run:
    """Raises NotFound."""
    run = queries.find_run(session, learner_id, run_id)
    if run is None:
        raise NotFound(f"There is no run {run_id}.")
    return run


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


def suggest(session: Session, learner_id: int, content: Catalogue) -> Experiment | None:
    """An experiment this learner has not finished, else the first."""
    every = list(content.experiments.values())
    fresh = [each for each in every if queries.find_last_finished(session, learner_id, each.id) is None]
    return next(iter(fresh or every), None)


def list_evidence(session: Session, learner_id: int) -> list[Evidence]:
    """Every finished run of an experiment: the share of what was predicted that came out so."""
    return [
        Evidence("run", run.experiment_id, run.ended_at, _foreseen(run))
        for run in queries.list_all_runs(session, learner_id)
        if run.experiment_id is not None and run.status == "finished" and run.ended_at is not None
    ]


def _foreseen(run: Run) -> float | None:
    """None without a prediction, and where nothing of what was predicted was measured."""
    measured = run.result or {}
    right = [
        is_right(said["value"], measured[name], dimension)
        for name, said in (run.prediction or {}).items()
        if measured.get(name) is not None and (dimension := dimension_of(name)) is not None
    ]
    return sum(right) / len(right) if right else None


def list_records(session: Session, learner_id: int) -> list[dict[str, Any]]:
    """Runs with prediction, theory and result as an export holds them; their events stay in the database."""
    return [
        as_record("run", run, run.created_at, without=("lease",)) for run in queries.list_all_runs(session, learner_id)
    ]


def cancel_run(session: Session, learner_id: int, run_id: int, now: datetime) -> Run:
    """Ask for a run's end: a waiting one ends now, an active one as soon as its worker sees the flag."""
    run = find_run(session, learner_id, run_id)
    waiting = _update(
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


def claim_next(session: Session, worker: str, place: Callable[[RunSpec], str | None], now: datetime) -> Claim | None:
    """Take the next run that `place` finds a device for. Delivered twice, one of the two finds it gone."""
    for run in queries.list_queue(session):
        try:
            spec = RunSpec.model_validate(run.spec)
        except ValidationError:  # of another release: it is left to a worker of that one, and keeps nobody waiting
            continue
        device = place(spec)
        if device is None:
            continue
        lease = secrets.token_hex(16)
        values = {
            "status": "starting",
            "phase": "Starting the ranks",
            "lease": lease,
            "worker": worker,
            "device": device,
            "started_at": now,
            "heartbeat_at": now,
        }
        if _update(session.execute(update(Run).where(Run.id == run.id, Run.status == WAITING).values(**values))):
            return Claim(run.id, lease, spec, run.chunks)
    return None


def beat(session: Session, claim: Claim, now: datetime) -> bool:
    """Say that the run is still looked after; returns whether it is to be cancelled. Raises LeaseLost."""
    if not _update(session.execute(_owned(claim).values(heartbeat_at=now))):
        raise LeaseLost(f"Run {claim.run_id} was given up on by a sweep; another owner decides now.")
    run = session.get(Run, claim.run_id, populate_existing=True)
    return run is not None and run.cancel_requested_at is not None


def append_chunk(
    session: Session, claim: Claim, events: Sequence[Event], now: datetime, after: int | None = None
) -> int:
    """Write events behind the run's last chunk; returns the chunk's sequence number. Raises LeaseLost.

    `after`: the last chunk the writer knows of. Where there is one more, it is this very one: its commit came through
    and the answer was lost, so nothing is written twice.
    """
    if after is not None and session.scalar(_is_owned(claim, Run.chunks == after + 1)) is not None:
        return after + 1
    steps = [event.step for event in events if isinstance(event, StepEvent)]
    values: dict[str, Any] = {"chunks": Run.chunks + 1, "heartbeat_at": now}
    if steps:
        values |= {"steps_done": max(steps), "status": "running", "phase": ""}
    if not _update(session.execute(_owned(claim).values(**values))):
        raise LeaseLost(f"Run {claim.run_id} was given up on by a sweep; its events are not written.")
    run = session.get(Run, claim.run_id, populate_existing=True)
    assert run is not None
    session.add(Chunk(run_id=run.id, sequence=run.chunks, events=[to_json(e) for e in events], created_at=now))
    session.flush()
    return run.chunks


def end_run(
    session: Session, claim: Claim, status: str, now: datetime, failure: Mapping[str, Any] | None = None
) -> bool:
    """End a run as `finished`, `failed` or `cancelled`, once. Its result is computed from what its ranks reported."""
    assert status in ENDED
    run = session.get(Run, claim.run_id)
    assert run is not None
    result = results.summarise(session, run) if status == "finished" else None
    if status == "finished" and result is None:
        status, failure = "failed", {"cause": "no result", "message": "The ranks ended without reporting a result."}
    return _update(
        session.execute(
            _owned(claim).values(
                status=status,
                phase=_end_phase(status, failure),
                ended_at=now,
                result=result,
                failure=dict(failure) if failure else None,
            )
        )
    )


def give_up_on_stale(session: Session, now: datetime) -> list[int]:
    """End active runs whose worker stopped beating; returns their ids. What they streamed stays."""
    stale = [run for run in queries.list_active(session) if (run.heartbeat_at or run.created_at) < now - STALE_AFTER]
    ended = []
    for run in stale:
        silent = round((now - (run.heartbeat_at or run.created_at)).total_seconds())
        cancelled = run.cancel_requested_at is not None
        failure = {
            "cause": "worker lost",
            "message": f"Worker {run.worker} has said nothing for {silent} s, so its ranks are gone too. Run it again.",
        }
        done = _update(
            session.execute(
                update(Run)
                .where(Run.id == run.id, Run.status.in_(ACTIVE), Run.heartbeat_at == run.heartbeat_at)
                .values(
                    status="cancelled" if cancelled else "failed",
                    phase="Cancelled" if cancelled else _end_phase("failed", failure),
                    ended_at=now,
                    lease=None,
                    failure=None if cancelled else failure,
                )
            )
        )
        if done:
            ended.append(run.id)
    return ended


def count_by_status(session: Session) -> dict[str, int]:
    """All runs, by status."""
    return queries.count_by_status(session)


def runs_wait(session: Session) -> bool:
    return bool(queries.list_queue(session))


def announce_worker(
    session: Session, name: str, kind: str, devices: list[dict[str, Any]], now: datetime, run_id: int | None
) -> None:
    """A worker says that it is there."""
    worker = session.get(WorkerPresence, name)
    if worker is None:
        session.add(WorkerPresence(name=name, kind=kind, devices=devices, started_at=now, seen_at=now, run_id=run_id))
        return
    worker.kind, worker.devices, worker.seen_at, worker.run_id = kind, devices, now, run_id


def most_gpus_elsewhere(session: Session, name: str, now: datetime) -> int:
    """The most GPUs another present worker has: a worker without any leaves `auto` runs that fit there to it."""
    others = [worker for worker in workers_present(session, now) if worker.name != name]
    return max((sum(device.get("kind") == "cuda" for device in worker.devices) for worker in others), default=0)


def forget_workers_long_gone(session: Session, now: datetime) -> None:
    """Take back the lines of workers that were killed: those that said goodbye took theirs along."""
    session.execute(delete(WorkerPresence).where(WorkerPresence.seen_at < now - FORGET_WORKERS_AFTER))


def retire_worker(session: Session, name: str) -> None:
    """A worker says goodbye."""
    session.execute(delete(WorkerPresence).where(WorkerPresence.name == name))


def workers_present(session: Session, now: datetime) -> Sequence[WorkerPresence]:
    """Workers that beat recently."""
    return queries.list_workers(session, now - STALE_AFTER)


def _owned(claim: Claim) -> Any:
    return update(Run).where(Run.id == claim.run_id, Run.lease == claim.lease, Run.status.in_(ACTIVE))


def _is_owned(claim: Claim, condition: Any) -> Any:
    return select(Run.id).where(Run.id == claim.run_id, Run.lease == claim.lease, Run.status.in_(ACTIVE), condition)


def _update(result: Any) -> bool:
    """Whether a conditional update changed its row: how state changes are won or lost, on both databases."""
    assert isinstance(result, CursorResult)
    return result.rowcount == 1


def _end_phase(status: str, failure: Mapping[str, Any] | None) -> str:
    return {"finished": "Finished", "cancelled": "Cancelled"}.get(status) or str(
        (failure or {}).get("message", "Failed")
    )[:200]
