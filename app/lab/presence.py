"""The workers that are there: they say so every few seconds, and are believed for as long."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import delete
from sqlalchemy.orm import Session

from app.core.errors import NotFound
from app.core.leases import STALE_AFTER
from app.lab import queries
from app.lab.models import ServedRelease, WorkerPresence
from app.lab.sizes import gpus_for, gpus_for_ranks, kind_on, sizes_on
from labs.spec import LAPTOP, RunSize, RunSpec, Sizes, check_size

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


def drain_worker(session: Session, name: str, is_drained: bool) -> None:
    """Have a worker take no more runs, or take runs again. Raises NotFound."""
    worker = session.get(WorkerPresence, name)
    if worker is None or worker.kind != "device":
        raise NotFound(f"There is no device worker {name!r}.")
    worker.is_drained = is_drained


def devices_elsewhere(session: Session, name: str, now: datetime) -> list[list[dict[str, Any]]]:
    """The devices of the other workers that take runs: a worker without GPUs leaves them the `auto` runs that theirs
    can hold."""
    return [worker.devices for worker in workers_taking_runs(session, now) if worker.name != name]


def most_gpus(elsewhere: Sequence[Sequence[Mapping[str, Any]]], spec: RunSpec) -> int:
    """The most GPUs among the workers of those devices that can each hold a rank of `spec`."""
    return max((len(gpus_for(devices, spec)) for devices in elsewhere), default=0)


def sizes_here(session: Session, now: datetime) -> Sizes:
    """How large a run may be, on each of the workers that take runs; a laptop's where none could take it, for it waits
    then for one that comes."""
    workers = [(worker.name, worker.devices) for worker in workers_taking_runs(session, now)]

    def sizes(spec: RunSpec) -> list[RunSize]:
        found = [size for name, devices in workers for size in sizes_on(devices, spec, f"worker {name}").values()]
        return found or [LAPTOP]

    return sizes


def why_nobody_takes(session: Session, spec: RunSpec, now: datetime) -> str | None:
    """Why none of the workers that are there can ever take a run of `spec`; None where one can."""
    present = [worker for worker in workers_present(session, now) if worker.kind == "device"]
    if not present:
        return "No worker answers."
    takers = workers_taking_runs(session, now)
    if not takers:
        why = why_it_takes_nothing(present[0], served_release(session))
        return why.replace("It is", f"Worker {present[0].name} is", 1)
    return _why_no_hosts(spec, takers) if spec.hosts > 1 else _why_no_devices(spec, takers)


def _why_no_devices(spec: RunSpec, workers: Sequence[WorkerPresence]) -> str | None:
    """The same for a run on one host: too large for what there is, or not there."""
    if any(kind_on(worker.devices, spec) for worker in workers):
        return None
    sizes = [size for each in workers for size in sizes_on(each.devices, spec, f"worker {each.name}").values()]
    if sizes:
        too_large = check_size(spec, sizes)[0]
        return f"It is too large for what is there. {too_large.message} Accepted: {too_large.accepted}."
    if spec.device == "cpu":
        return "It asks for the CPU, and the workers that are there run on GPUs only."
    ranks = spec.parallel.world_size
    most = max(len(gpus_for_ranks(worker.devices, ranks)) for worker in workers)
    wanted = f"{ranks} {'GPUs' if ranks > 1 else 'GPU'}"
    return f"It asks for {wanted}, one for every rank; no worker that is there has more than {most}."


def _why_no_hosts(spec: RunSpec, workers: Sequence[WorkerPresence]) -> str | None:
    """The same for a run over several hosts."""
    offers = [device for worker in workers for device in worker.devices if device.get("hosts")]
    if not offers:
        return (
            f"It asks for {spec.hosts} hosts, and no worker that is there has several: "
            "`rankzero worker --backend` makes one, of a Slurm partition or of a local cluster."
        )
    if spec.link is not None and not any(device.get("is_shaped") for device in offers):
        return "It asks for a link of its own, and no worker that is there is for a local cluster (`rankzero cluster`)."
    whys = [why for device in offers if (why := _why_not_on(spec, device))]
    return whys[0] if len(whys) == len(offers) else None


def _why_not_on(spec: RunSpec, device: Mapping[str, Any]) -> str | None:
    each, hosts = spec.ranks_per_host, device["hosts"]
    large = [host for host in hosts if host["cpus"] >= each and (spec.device != "cuda" or host["gpus"] >= each)]
    if len(hosts) < spec.hosts:
        return f"It asks for {spec.hosts} hosts; {device['name']}."
    if len(large) < spec.hosts:
        what = "GPUs" if spec.device == "cuda" else "cores"
        return f"It asks for {spec.hosts} hosts with {each} {what} each; {len(large)} have them: {device['name']}."
    return None


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
