"""Who takes a run: how large one may be on the workers that are there, and why none of them ever takes it.

Apart from `presence`, which the clock loads and which knows nothing of what runs are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy.orm import Session

from app.lab.models import WorkerPresence
from app.lab.presence import served_release, why_it_takes_nothing, workers_present, workers_taking_runs
from app.lab.sizes import gpus_for, gpus_for_ranks, kind_on, sizes_on
from labs.spec import LAPTOP, RunSize, RunSpec, Sizes, SpecError, Violation, check_size, parse_run_spec

_NO_HOSTS = (
    ", and no worker that is there has several: “rankzero worker --backend” makes one, of a Slurm partition or of a "
    "local cluster."
)


def most_gpus(elsewhere: Sequence[Sequence[Mapping[str, Any]]], spec: RunSpec) -> int:
    """The most GPUs among the workers of those devices that can each hold a rank of `spec`."""
    return max((len(gpus_for(devices, spec)) for devices in elsewhere), default=0)


@dataclass(frozen=True)
class Here:
    """What the workers that are there have room for: `sizes` of a run, and whether any has several hosts."""

    sizes: Sizes
    has_hosts: bool

    def read(self, spec: object) -> RunSpec:
        """A run of `spec` (JSON data) that one of them may take. Raises SpecError with every violation; what it says is
        accepted of hosts is no more than they have."""
        try:
            parsed = parse_run_spec(spec, sizes=self.sizes)
        except SpecError as error:
            raise SpecError([self._of_hosts(each) for each in error.violations]) from None
        if parsed.hosts > 1 and not self.has_hosts:
            message = f"It asks for {parsed.hosts} hosts{_NO_HOSTS}"
            raise SpecError(
                [Violation("hosts", parsed.hosts, message, "1; more once a worker that has several hosts is started")]
            )
        return parsed

    def _of_hosts(self, violation: Violation) -> Violation:
        return violation if self.has_hosts or violation.field != "hosts" else replace(violation, accepted="1")


def here(session: Session, now: datetime) -> Here:
    """Sizes are those of workers that take runs, a laptop's where none could take it, for it waits then for one that
    comes; hosts are those of all that are there, drained ones too, and where there is none at all nobody knows."""
    workers = workers_taking_runs(session, now)
    present = [worker for worker in workers_present(session, now) if worker.kind == "device"]

    def sizes(spec: RunSpec) -> list[RunSize]:
        return _sizes(workers, spec) or [LAPTOP]

    return Here(sizes, not present or bool(_with_hosts(present)))


def _sizes(workers: Sequence[WorkerPresence], spec: RunSpec) -> list[RunSize]:
    """By worker, named where there are several to tell apart."""
    named = [(f"worker {each.name}" if len(workers) > 1 else "", each.devices) for each in workers]
    return [size for where, devices in named for size in sizes_on(devices, spec, where).values()]


def worker_to_resume(session: Session, now: datetime) -> str | None:
    """The drained worker that would take runs again, where none does."""
    if workers_taking_runs(session, now):
        return None
    drained = (each for each in workers_present(session, now) if each.kind == "device" and each.is_drained)
    return next((each.name for each in drained), None)


def why_nobody_takes(session: Session, spec: RunSpec, now: datetime) -> str | None:
    """Why none of the workers that are there can ever take a run of `spec`; None where one can."""
    present = [worker for worker in workers_present(session, now) if worker.kind == "device"]
    if not present:
        return "No worker answers."
    takers = workers_taking_runs(session, now)
    if not takers:
        worker = next((each for each in present if each.is_drained), present[0])
        why = why_it_takes_nothing(worker, served_release(session))
        return why.replace("It is", f"Worker {worker.name} is", 1)
    return _why_no_hosts(spec, takers) if spec.hosts > 1 else _why_no_devices(spec, takers)


def _why_no_devices(spec: RunSpec, workers: Sequence[WorkerPresence]) -> str | None:
    """The same for a run on one host: too large for what there is, or not there."""
    if any(kind_on(worker.devices, spec) for worker in workers):
        return None
    sizes = _sizes(workers, spec)
    if sizes:
        too_large = check_size(spec, sizes)[0]
        return f"It is too large for what is there. {too_large.message} Accepted: {too_large.accepted}."
    if all("hosts" in device for worker in workers for device in worker.devices):
        return "It is for one host, and the workers that are there take runs over several; “rankzero worker” makes one."
    if spec.device == "cpu":
        return "It asks for the CPU, and the workers that are there run on GPUs only."
    ranks = spec.parallel.world_size
    most = max(len(gpus_for_ranks(worker.devices, ranks)) for worker in workers)
    wanted = f"{ranks} {'GPUs' if ranks > 1 else 'GPU'}"
    return f"It asks for {wanted}, one for every rank; no worker that is there has more than {most}."


def _why_no_hosts(spec: RunSpec, workers: Sequence[WorkerPresence]) -> str | None:
    """The same for a run over several hosts."""
    offers = _with_hosts(workers)
    if not offers:
        return f"It asks for {spec.hosts} hosts{_NO_HOSTS}"
    if spec.link is not None and not any(device.get("is_shaped") for device in offers):
        return "It asks for a link of its own, and no worker that is there is for a local cluster (“rankzero cluster”)."
    whys = [why for device in offers if (why := _why_not_on(spec, device))]
    return whys[0] if len(whys) == len(offers) else None


def _with_hosts(workers: Sequence[WorkerPresence]) -> list[Mapping[str, Any]]:
    return [device for worker in workers for device in worker.devices if device.get("hosts")]


def _why_not_on(spec: RunSpec, device: Mapping[str, Any]) -> str | None:
    each, hosts = spec.ranks_per_host, device["hosts"]
    large = [host for host in hosts if host["cpus"] >= each and (spec.device != "cuda" or host["gpus"] >= each)]
    if len(hosts) < spec.hosts:
        return f"It asks for {spec.hosts} hosts; {device['name']}."
    if len(large) < spec.hosts:
        what = "GPUs" if spec.device == "cuda" else "cores"
        return f"It asks for {spec.hosts} hosts with {each} {what} each; {len(large)} have them: {device['name']}."
    return None
