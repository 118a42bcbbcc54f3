"""Slurm as a client sees it: its partitions, and jobs submitted, followed and cancelled by its own commands.

There may be no accounting: what became of a job is asked of the controller, which remembers it for some minutes, and
else read from the run's folder. The controller may be away for a while, too: nothing is concluded from that.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

ASK_SECONDS = 20.0
RESTART_SECONDS = 12.0  # less than a run may go unheard of
_PARTS = ("sbatch", "scancel", "scontrol", "sinfo", "squeue")
_OUT_OF_USE = ("down", "drain", "fail", "maint", "unknown", "inval", "reboot", "power")
# Of a job that has not ended.
WAITING = frozenset({"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT"})
_UNDER_WAY = WAITING | {"RUNNING", "SUSPENDED", "COMPLETING", "STAGE_OUT", "STOPPED", "RESIZING", "SIGNALING"}


class SlurmAway(Exception):
    """Slurm did not answer, or answered that it cannot just now."""


class UnknownJob(Exception):
    """Slurm does not remember the job."""


@dataclass(frozen=True)
class Host:
    """A node of a partition."""

    name: str
    state: str
    cpus: int
    memory_bytes: int
    gpus: int

    @property
    def is_usable(self) -> bool:
        return not any(word in self.state for word in _OUT_OF_USE) and not self.state.endswith("*")


@dataclass(frozen=True)
class Job:
    """What Slurm says of a job."""

    state: str
    reason: str
    exit_code: int
    nodes: str

    @property
    def has_ended(self) -> bool:
        return self.state not in _UNDER_WAY


def missing_commands() -> list[str]:
    return [name for name in _PARTS if shutil.which(name) is None]


def partitions() -> list[str]:
    """By name. Raises SlurmAway."""
    return _ask("sinfo", "-h", "-o", "%R").split()


def hosts_of(partition: str) -> tuple[Host, ...]:
    """The nodes of a partition. Raises SlurmAway."""
    said = _ask("sinfo", "-h", "-N", "-p", partition, "-O", "NodeList:100,StateLong:30,CPUs:12,Memory:16,Gres:200")
    return tuple(_host(line.split()) for line in said.splitlines() if len(line.split()) >= 4)


def _host(fields: Sequence[str]) -> Host:
    gpus = sum(int(count) for count in re.findall(r"\bgpu:(?:[^:(,]+:)?(\d+)", fields[4] if len(fields) > 4 else ""))
    return Host(fields[0], fields[1].lower(), int(fields[2]), int(fields[3]) * 2**20, gpus)


def submit(script: str, options: Sequence[str], variables: Mapping[str, str]) -> str:
    """The id of a new job of `script`. A controller that is being restarted is waited for. Raises OSError with what
    Slurm says."""
    began = time.monotonic()
    while True:
        try:
            done = _submit_once(["sbatch", "--parsable", *options], script, variables)
        except subprocess.TimeoutExpired:
            raise OSError("Slurm did not take the job in time") from None
        if "controller" not in done.stderr.lower() or time.monotonic() - began > RESTART_SECONDS:
            break
        time.sleep(1.0)
    if done.returncode:
        raise OSError(f"Slurm refused the job: {done.stderr.strip()[-300:]}")
    return done.stdout.strip().partition(";")[0]


def _submit_once(command: Sequence[str], script: str, variables: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        input=script,
        env=dict(variables),
        capture_output=True,
        text=True,
        timeout=RESTART_SECONDS,
        check=False,
    )


def look_at(job: str) -> Job:
    """Raises SlurmAway or UnknownJob."""
    fields = dict(re.findall(r"(\S+?)=(\S*)", _ask("scontrol", "show", "job", "-o", job)))
    code, _, number = fields.get("ExitCode", "0:0").partition(":")
    exit_code = int(code) or (128 + int(number) if number not in ("", "0") else 0)
    nodes = fields.get("NodeList", "")
    reason = fields.get("Reason", "").replace("_", " ")  # a sentence, at times
    return Job(fields.get("JobState", ""), reason, exit_code, "" if nodes == "(null)" else nodes)


def expand(nodes: str) -> list[str]:
    """n[1-2] as n1 and n2. Raises SlurmAway."""
    return _ask("scontrol", "show", "hostnames", nodes).split() if nodes else []


def cancel(*words: str) -> None:
    """scancel with these words; of a job that is gone nothing is said. Raises SlurmAway."""
    _ask("scancel", "--quiet", *words)


def down(names: Collection[str]) -> list[str]:
    """Those of these hosts that Slurm holds for lost. Raises SlurmAway."""
    said = _ask("sinfo", "-h", "-N", "-n", ",".join(sorted(names)), "-O", "NodeList:100,StateLong:30") if names else ""
    states = (line.split() for line in said.splitlines())
    return sorted({name for name, state in states if state.endswith("*") or "down" in state or "fail" in state})


def own_settings() -> dict[str, str]:
    """Where Slurm's commands find their configuration, for those of a job."""
    return {name: value for name, value in os.environ.items() if name in ("SLURM_CONF", "SLURM_CONF_SERVER")}


def own_jobs() -> list[tuple[str, str]]:
    """Id and name of this user's jobs. Raises SlurmAway."""
    said = _ask("squeue", "-h", "--me", "-O", "JobID:20,Name:120")
    return [(fields[0], fields[1]) for line in said.splitlines() if len(fields := line.split()) == 2]


def _ask(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=ASK_SECONDS, check=False, env=os.environ)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SlurmAway(f"{command[0]}: {error}") from error
    if done.returncode:
        if "Invalid job id" in done.stderr:
            raise UnknownJob(command[-1])
        raise SlurmAway(f"{command[0]}: {done.stderr.strip()[-300:]}")
    return done.stdout
