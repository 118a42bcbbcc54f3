"""Runs over several hosts as jobs of Slurm: where they fit, how they are submitted, followed and ended.

The database is the record. A job that nobody looks after ends itself (labs.gang), and one whose run is in other hands
is cancelled as soon as a worker of its partition comes by.
"""

from __future__ import annotations

import hashlib
import shlex
import sys
import threading
import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import structlog

from app.lab.work import RunFailure
from labs import gang
from labs.command import RUN_STARTED_AT, environment, torchrun_over_hosts
from labs.spec import RunSpec
from worker import slurm
from worker.devices import Placement, UnknownDevice
from worker.launcher import Launch, make_folders
from worker.over_hosts import HOST_LOST, RanksOverHosts, SeveralHosts
from worker.slurm import Host, Job, SlurmAway, UnknownJob

log = structlog.get_logger()

POLL_SECONDS = 0.5
END_SECONDS = 7.0
_KILL_AFTER_SECONDS = 3.0  # of being cancelled
# Ends that are none of the run's fault: it starts again.
_TAKEN_AWAY = {"PREEMPTED": "preempted", "BOOT_FAIL": HOST_LOST, "NODE_FAIL": HOST_LOST}


@dataclass(frozen=True)
class Partition(SeveralHosts):
    """A partition of Slurm."""

    name: str
    install: str  # which of several installs this is, in the names of jobs
    hosts: tuple[Host, ...] = ()
    trouble: str = ""

    def jobs(self) -> dict[str, str]:
        """Jobs of this install that Slurm has, by the folder's name of their run."""
        prefix = job_name(self.install, "")
        with suppress(SlurmAway):
            return {name.removeprefix(prefix): job for job, name in slurm.own_jobs() if name.startswith(prefix)}
        return {}

    def look_again(self) -> Partition:
        try:
            return replace(self, hosts=slurm.hosts_of(self.name), trouble="")
        except SlurmAway as error:
            return replace(self, hosts=(), trouble=f"Slurm does not answer. {error}")

    def place(self, spec: RunSpec, gpus_elsewhere: int = 0, taken: frozenset[str] = frozenset()) -> Placement | None:
        """Where `spec` can run here, or None. Slurm itself knows which hosts are free, and lets the job wait."""
        if spec.hosts == 1 or spec.link is not None:  # links are what they are
            return None
        fitting = [each for each in self.hosts if each.is_usable and each.cpus >= spec.ranks_per_host]
        kinds = [spec.fits(each.gpus, has_cpu=True) for each in fitting]
        kind = "cuda" if kinds.count("cuda") >= spec.hosts else "cpu"
        if (spec.device == "cuda" and kind != "cuda") or len(fitting) < spec.hosts:
            return None
        ranks, talk = spec.parallel.world_size, "NCCL" if kind == "cuda" else "gloo"
        text = f"{spec.hosts} hosts of partition {self.name}, {ranks} ranks over {talk}"
        # where GPUs are given Slurm says which; where they are not, none is to be seen
        variables = {} if kind == "cuda" else {"CUDA_VISIBLE_DEVICES": ""}
        gpus = spec.ranks_per_host if kind == "cuda" else 0
        return Placement(text, variables, launch=partial(launch_job, self, gpus), way="by Slurm")

    def describe(self) -> list[dict[str, object]]:
        usable = [each for each in self.hosts if each.is_usable]
        return [
            {
                "kind": "slurm",
                "name": f"Slurm partition {self.name}, {len(usable)} of {len(self.hosts)} hosts usable",
                "backend": "NCCL" if any(each.gpus for each in self.hosts) else "gloo",
                "memory_bytes": sum(each.memory_bytes for each in self.hosts),
                "partition": self.name,
                "hosts": [
                    {
                        "name": each.name,
                        "state": each.state,
                        "is_usable": each.is_usable,
                        "cpus": each.cpus,
                        "gpus": each.gpus,
                        "memory_bytes": each.memory_bytes,
                    }
                    for each in self.hosts
                ],
            }
        ]


def find_partition(name: str, database_url: str) -> Partition:
    """The partition as it is now. Raises UnknownDevice where there is none of that name, or no Slurm."""
    if missing := slurm.missing_commands():
        raise UnknownDevice(f"--backend slurm: {', '.join(missing)} is not on PATH: Slurm's commands are needed here.")
    try:
        known = slurm.partitions()
        if name not in known:
            raise UnknownDevice(f"--partition {name or '(none)'}: Slurm has {', '.join(known) or 'no partition'}.")
        return Partition(name, hashlib.sha256(database_url.encode()).hexdigest()[:6], slurm.hosts_of(name))
    except SlurmAway as error:
        raise UnknownDevice(f"--backend slurm: Slurm does not answer. {error}") from error


def launch_job(partition: Partition, gpus: int, spec: RunSpec, folder: Path, extra: dict[str, str]) -> Launch:
    """Submit `spec` as a job whose folder is `folder`, which all hosts must share. Raises OSError."""
    events, logs = make_folders(spec, folder)
    (folder / gang.LIFELINE).touch(mode=0o600)
    ranks = torchrun_over_hosts(spec, events, logs, (gang.ADDRESS, gang.PORT), gang.NODE_RANK)
    command = [sys.executable, "-I", "-S", gang.__file__, "batch", str(folder), "--", *ranks]
    options = [
        f"--job-name={job_name(partition.install, folder.name)}",
        f"--partition={partition.name}",
        f"--nodes={spec.hosts}-{spec.hosts}",
        "--ntasks-per-node=1",
        f"--cpus-per-task={spec.ranks_per_host}",
        *([f"--gpus-per-node={gpus}"] if gpus else []),
        "--no-requeue",  # ours is the record, and starts it again
        "--output=/dev/null",  # each host has a file of its own in the folder
        f"--chdir={folder}",
    ]
    # under the shell that Slurm asks for; where this Python is not on the host, that is what it says
    script = f"#!/bin/sh\nexec {shlex.join(command)}\n"
    variables = environment({**extra, RUN_STARTED_AT: repr(time.time()), **slurm.own_settings()})
    return Launch(folder, SlurmJob(slurm.submit(script, options, variables), folder, spec), False)


def job_name(install: str, folder_name: str) -> str:
    """Tells a job's run and claim, by the name of its folder."""
    return f"rankzero-{install}-{folder_name}"


def cancel_leftovers(jobs: Mapping[str, str], own: Collection[str]) -> None:
    """End `jobs` of which the claim is not among `own`: those whose runs are in somebody's hands."""
    for folder_name, job in jobs.items():
        if folder_name not in own:
            log.warning("a job that nobody looks after is cancelled", job=job, claim=folder_name)
            with suppress(SlurmAway, UnknownJob):
                slurm.cancel(job)


class SlurmJob(RanksOverHosts):
    """A job, looked at from a thread: the controller may take its time to answer, or be away."""

    def __init__(self, job: str, folder: Path, spec: RunSpec) -> None:
        self.job, self._folder, self._spec = job, folder, spec
        self.doing = f"waiting in Slurm, job {job}"
        self._seen: Job | None = None
        self._code: int | None = None
        self._nodes = ""
        self._over = threading.Event()
        self._watch = threading.Thread(target=self._look_until_over, name=f"slurm-{job}", daemon=True)
        self._watch.start()

    @property
    def is_waiting(self) -> bool:
        return self._seen is None or self._seen.state in slurm.WAITING

    def poll(self) -> int | None:
        return self._code

    def end(self) -> None:
        """Cancel it; what does not end when told is killed."""
        began, left = time.monotonic(), [(_KILL_AFTER_SECONDS, ["--signal=KILL", "--full"]), (0.0, [])]
        while not self._over.is_set() and self._code is None and (passed := time.monotonic() - began) < END_SECONDS:
            if left and passed >= left[-1][0]:
                with suppress(SlurmAway, UnknownJob):
                    slurm.cancel(*left.pop()[1], self.job)
            time.sleep(POLL_SECONDS)
        if not self._over.is_set() and self._code is None:  # as with a host that is gone, until Slurm gives it up
            log.warning("a cancelled job is still there", job=self.job)
        self._over.set()

    def _down(self) -> list[str]:
        """Hosts of the job that Slurm says are down."""
        with suppress(SlurmAway):
            return slurm.down(slurm.expand(self._nodes))
        return []

    def failure(self) -> tuple[RunFailure, bool] | None:
        state = self._seen.state if self._seen else ""
        if self._code == gang.NO_FOLDER:
            said = f"A host of the job cannot read and write the run's folder, {self._folder}."
            more = "RANKZERO_DATA must be on a file system that the worker and all hosts share, under the same path."
            return RunFailure("no shared folder", f"{said} {more}"), False
        if self._code == gang.ORPHANED:
            return RunFailure("worker lost", "The job ended itself: its worker gave no sign of life."), True
        if state in _TAKEN_AWAY:
            lost = ", ".join(self._down()) or self._nodes
            what = {"preempted": f"Slurm took job {self.job}'s hosts for others."}
            said = what.get(_TAKEN_AWAY[state], f"Slurm lost host {lost} of job {self.job}.")
            return RunFailure(_TAKEN_AWAY[state], said), True
        words = {
            "TIMEOUT": ("limit reached", "reached the partition's time limit"),
            "OUT_OF_MEMORY": ("out of memory", "took more memory than Slurm gave it"),
            "CANCELLED": ("cancelled in Slurm", "was cancelled in Slurm, not here"),
        }
        if state in words:
            cause, said = words[state]
            return RunFailure(cause, f"Job {self.job} {said}."), False
        return None

    def _look_until_over(self) -> None:
        while not self._over.is_set():
            with suppress(OSError):
                (self._folder / gang.LIFELINE).touch()
            try:
                self._note(slurm.look_at(self.job))
            except UnknownJob:
                self._code = self._written_code(1)
            except SlurmAway as error:
                log.warning("Slurm does not answer, the job goes on", job=self.job, error=str(error))
            if self._code is not None:
                return
            self._over.wait(POLL_SECONDS)

    def _note(self, seen: Job) -> None:
        self._seen, self._nodes = seen, seen.nodes or self._nodes
        if seen.state in slurm.WAITING:
            reason = f": {seen.reason}" if seen.reason not in ("", "None") else ""
            self.doing = f"waiting in Slurm, job {self.job}{reason}"
        elif not seen.has_ended:
            self.doing = f"starting ranks on {self._nodes}"
        else:
            self._code = 0 if seen.state == "COMPLETED" else self._written_code(seen.exit_code or 1) or 1

    def _written_code(self, otherwise: int) -> int:
        with suppress(OSError, ValueError):
            return int((self._folder / gang.EXIT_CODE).read_text())
        return otherwise
