"""The workers that are there: they say so every few seconds, and are believed for as long."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from sqlalchemy import delete
from sqlalchemy.orm import Session

from app.core.errors import NotFound
from app.core.leases import STALE_AFTER
from app.lab import queries
from app.lab.models import ServedRelease, WorkerPresence

if TYPE_CHECKING:  # the clock announces itself as well, and knows no sizes of runs
    from app.lab.sizes import Device

LONGEST_TROUBLE = 500  # characters
_THE_ROW = 1
FORGET_WORKERS_AFTER = timedelta(minutes=10)  # one that was only held up announces itself anew


def announce_worker(
    session: Session,
    name: str,
    kind: str,
    devices: list[dict[str, object]],
    now: datetime,
    run_id: int | None,
    release: str = "",
    trouble: str = "",
) -> None:
    """A worker says that it is there, of which release, and what is wrong with its devices, if anything."""
    worker = session.get(WorkerPresence, name)
    if worker is None:
        worker = WorkerPresence(name=name, started_at=now)
        session.add(worker)
    worker.kind, worker.devices, worker.seen_at, worker.run_id = kind, devices, now, run_id
    worker.release, worker.trouble = release, trouble[:LONGEST_TROUBLE]


def note_release(session: Session, release: str, now: datetime) -> None:
    """The web server says which release its pages are of."""
    served = session.get(ServedRelease, _THE_ROW)
    if served is None:
        session.add(ServedRelease(id=_THE_ROW, release=release, noted_at=now))
    elif served.release != release:
        served.release, served.noted_at = release, now


def served_release(session: Session) -> str:
    """Of which release the pages are; nothing before any were served."""
    served = session.get(ServedRelease, _THE_ROW)
    return served.release if served else ""


def why_it_takes_nothing(worker: WorkerPresence, served: str) -> str:
    """Why `worker` must not take runs; nothing where it may."""
    if served and worker.release and worker.release != served:
        return (
            f"It is of release {worker.release}, the pages are of {served}: it takes no run. Restart it from the same "
            "release."
        )
    return "It is drained: it takes no more runs until it is resumed." if worker.is_drained else ""


def why_nothing_is_taken(session: Session, name: str) -> str:
    """The same, asked by the worker itself, in the transaction in which it would claim."""
    worker = session.get(WorkerPresence, name, populate_existing=True)
    return why_it_takes_nothing(worker, served_release(session)) if worker else ""


def drain_worker(session: Session, name: str, is_drained: bool, now: datetime) -> None:
    """Have a worker take no more runs, or take runs again. Raises NotFound."""
    worker = session.get(WorkerPresence, name)
    if worker is None or worker.kind != "device":
        raise NotFound(f"There is no device worker {name!r}.")
    if worker.is_drained != is_drained:
        worker.is_drained, worker.drained_at = is_drained, now if is_drained else None


def devices_elsewhere(session: Session, name: str, now: datetime) -> list[Sequence[Device]]:
    """The devices of the other workers that take runs: a worker without GPUs leaves them the `auto` runs that theirs
    can hold."""
    return [worker.devices for worker in workers_taking_runs(session, now) if worker.name != name]


def workers_taking_runs(session: Session, now: datetime) -> list[WorkerPresence]:
    """Device workers that are there, of the right release and not drained."""
    served = served_release(session)
    return [
        worker
        for worker in workers_present(session, now)
        if worker.kind == "device" and not why_it_takes_nothing(worker, served)
    ]


def forget_workers_long_gone(session: Session, now: datetime) -> None:
    """Take back the lines of workers that were killed: those that said goodbye took theirs along."""
    session.execute(delete(WorkerPresence).where(WorkerPresence.seen_at < now - FORGET_WORKERS_AFTER))


def retire_worker(session: Session, name: str) -> None:
    """A worker says goodbye."""
    session.execute(delete(WorkerPresence).where(WorkerPresence.name == name))


def workers_present(session: Session, now: datetime) -> Sequence[WorkerPresence]:
    """Workers that beat recently."""
    return queries.list_workers(session, now - STALE_AFTER)
