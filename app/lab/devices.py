"""What runs can run on: the workers that are there with their devices, what each does, and what waits for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from pydantic import ValidationError
from sqlalchemy.orm import Session

from app.core.limits import Limits, limits_of
from app.lab import presence, queries, takers
from app.lab.models import Run, WorkerPresence
from app.lab.naming import title
from app.lab.sizes import Device, size_of_cpu, size_of_gpu
from app.lab.waiting import expected_waits
from labs.spec import RunSize, RunSpec

_GPUS = ("cuda", "mig")


@dataclass(frozen=True)
class DeviceRow:
    """A worker with devices, the run on it, and why it takes none, if so."""

    worker: WorkerPresence
    run: Run | None
    name: str  # of the run
    takes_nothing: str

    @property
    def sizes(self) -> list[tuple[Device, RunSize | None]]:
        """Each device with how large a run may be on it, of a GPU with one rank; of several hosts nothing is said."""
        return [(device, _size(device)) for device in self.worker.devices]

    @property
    def said(self) -> str:
        """What it does, in a word or two."""
        if self.run is not None:
            return f"Run {self.run.id}"
        return "Drained" if self.worker.is_drained else "Takes no runs" if self.takes_nothing else "Idle"


@dataclass(frozen=True)
class WaitingRow:
    """A run that waits: since when, for how much longer, and why nobody takes it, if so."""

    run: Run
    name: str
    expected_seconds: float | None
    nobody_takes_it: str | None


@dataclass(frozen=True)
class DevicesPage:
    """All workers, and the queue in the order in which it will be taken."""

    devices: Sequence[DeviceRow]
    others: Sequence[WorkerPresence]  # the control worker and the clock
    queue: Sequence[WaitingRow]
    release: str
    limits: Limits

    @property
    def has_gpus(self) -> bool:
        return any(device["kind"] in _GPUS for row in self.devices for device in row.worker.devices)

    @property
    def room(self) -> RunSize | None:
        """How large a run may be on the largest device that takes one now or next; none where nothing takes any."""
        sizes = [size for row in self.devices if not row.takes_nothing for _, size in row.sizes if size is not None]
        return max(sizes, key=lambda size: size.memory_bytes, default=None)

    @property
    def is_idle(self) -> bool:
        """Whether a run that is submitted now would start at once."""
        return not self.queue and any(row.run is None and not row.takes_nothing for row in self.devices)


def device_rows(session: Session, now: datetime) -> list[DeviceRow]:
    """The device workers that are there."""
    active = {run.worker: run for run in queries.list_active(session)}  # a claim says it before a worker's next beat
    served = presence.served_release(session)
    return [
        DeviceRow(
            worker,
            run := active.get(worker.name),
            _name(run) if run else "",
            presence.why_it_takes_nothing(worker, served),
        )
        for worker in presence.workers_present(session, now)
        if worker.kind == "device"
    ]


def has_gpus(rows: Sequence[DeviceRow]) -> bool:
    """Whether any worker that is there has a GPU."""
    return any(device.get("kind") in _GPUS for row in rows for device in row.worker.devices)


def devices_page(session: Session, now: datetime) -> DevicesPage:
    waits = expected_waits(session, now)
    return DevicesPage(
        devices=device_rows(session, now),
        others=[each for each in presence.workers_present(session, now) if each.kind != "device"],
        queue=[
            WaitingRow(run, _name(run), waits.get(run.id), _why_nobody(session, run, now))
            for run in queries.list_queue(session)
        ],
        release=presence.served_release(session),
        limits=limits_of(session),
    )


def _size(device: Device) -> RunSize | None:
    kind = device.get("kind")
    if kind == "cpu":
        return size_of_cpu(device)
    return size_of_gpu(device, "bf16-mixed") if kind in _GPUS else None


def _name(run: Run) -> str:
    spec = _spec_of(run)
    return title(spec) if spec else "of another release"


def _why_nobody(session: Session, run: Run, now: datetime) -> str | None:
    spec = _spec_of(run)
    if spec is None:
        return "Its spec is of another release: a worker of that one can take it."
    return takers.why_nobody_takes(session, spec, now)


def _spec_of(run: Run) -> RunSpec | None:
    try:
        return RunSpec.model_validate(run.spec)
    except ValidationError:
        return None
