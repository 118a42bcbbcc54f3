"""The workers that are there: they say so every few seconds, and are believed for as long."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import delete
from sqlalchemy.orm import Session

from app.lab import queries
from app.lab.models import WorkerPresence
from labs.spec import RunSpec

HEARTBEAT_SECONDS = 2.0
STALE_AFTER = timedelta(seconds=20)  # ten missed heartbeats: the worker is gone, not slow
FORGET_WORKERS_AFTER = timedelta(minutes=10)  # one that was only held up announces itself anew


def announce_worker(
    session: Session, name: str, kind: str, devices: list[dict[str, object]], now: datetime, run_id: int | None
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


def why_nobody_takes(session: Session, spec: RunSpec, now: datetime) -> str | None:
    """Why none of the workers that are there can ever take a run of `spec`; None where one can."""
    kinds = [
        [device.get("kind") for device in worker.devices]
        for worker in workers_present(session, now)
        if worker.kind == "device"
    ]
    if not kinds:
        return "No worker answers."
    if any(spec.fits(each.count("cuda"), "cpu" in each) for each in kinds):
        return None
    if spec.device == "cpu":
        return "It asks for the CPU, and the workers that are there run on GPUs only."
    ranks, most = spec.parallel.world_size, max(each.count("cuda") for each in kinds)
    wanted = f"{ranks} {'GPUs' if ranks > 1 else 'GPU'}"
    return f"It asks for {wanted}, one for every rank; no worker that is there has more than {most}."


def forget_workers_long_gone(session: Session, now: datetime) -> None:
    """Take back the lines of workers that were killed: those that said goodbye took theirs along."""
    session.execute(delete(WorkerPresence).where(WorkerPresence.seen_at < now - FORGET_WORKERS_AFTER))


def retire_worker(session: Session, name: str) -> None:
    """A worker says goodbye."""
    session.execute(delete(WorkerPresence).where(WorkerPresence.name == name))


def workers_present(session: Session, now: datetime) -> Sequence[WorkerPresence]:
    """Workers that beat recently."""
    return queries.list_workers(session, now - STALE_AFTER)
