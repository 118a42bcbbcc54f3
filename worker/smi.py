"""What `nvidia-smi` says of this machine's GPUs. It may be missing, fail, say anything, or hang for ever."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field

PROGRAM = "nvidia-smi"
PATIENCE_SECONDS = 20.0  # a driver that wakes takes a few; one that hangs never answers
_QUERY = ("--query-gpu=index,uuid,name,memory.total,memory.free,mig.mode.current", "--format=csv,noheader,nounits")
_GPU_LINE = re.compile(r"^GPU (\d+):")
_MIG_LINE = re.compile(r"^\s+MIG (\S+)\s+Device\s+(\d+):\s+\(UUID:\s*([^)\s]+)\)")
_MIG_MEMORY = re.compile(r"\.(\d+)gb")


@dataclass(frozen=True)
class Gpu:
    """One CUDA device: a GPU as the driver numbers it, or an instance of one that is cut up (MIG)."""

    index: int
    uuid: str
    name: str
    memory_bytes: int
    is_instance: bool = False
    free_bytes: int = field(default=0, compare=False)  # as it was looked at; 0 where that is not said


@dataclass(frozen=True)
class GpuListing:
    """The GPUs, and what kept them from being found."""

    gpus: tuple[Gpu, ...] = ()
    trouble: str = ""


def look(seconds: float = PATIENCE_SECONDS) -> GpuListing:
    """All CUDA devices of this machine. No program to ask means none: that is no trouble."""
    path = shutil.which(PROGRAM)
    if path is None:
        return GpuListing()
    said, trouble = _ask([path, *_QUERY], seconds)
    if trouble:
        return GpuListing(trouble=trouble)
    gpus: list[Gpu] = []
    instances: dict[int, list[Gpu]] | None = None
    for line in said.splitlines():
        gpu, is_cut_up = _gpu_of(line)
        if gpu is None:
            continue
        if not is_cut_up:
            gpus.append(gpu)
            continue
        if instances is None:
            listed, trouble = _ask([path, "-L"], seconds)
            instances = _instances_of(listed)
        gpus += instances.get(gpu.index, [])  # of a GPU that is cut up, CUDA sees the pieces only
    return GpuListing(tuple(gpus), trouble)


def _ask(command: Sequence[str], seconds: float) -> tuple[str, str]:
    """What a program printed, or what went wrong. One that cannot even be killed is left alone: a driver that hangs
    keeps it, and waiting for its end would hang us as well."""
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
    except OSError as error:
        return "", f"{command[0]} cannot be started: {error.strerror}."
    try:
        said, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        return "", f"{command[0]} has not answered for {seconds:g} s: the driver hangs. Its GPUs are left alone."
    if process.returncode:
        last = (said.strip().splitlines() or ["nothing"])[-1]
        return "", f"{command[0]} ended with {process.returncode}: {last[:200]}"
    return said, ""


def _gpu_of(line: str) -> tuple[Gpu | None, bool]:
    """A line of the query, and whether that GPU is cut up. None for what is no such line."""
    parts = [part.strip() for part in line.split(",")]
    if len(parts) != 6 or not parts[0].isdigit():
        return None, False
    total_bytes, free_bytes = (_mebibytes(part) for part in parts[3:5])
    return Gpu(int(parts[0]), parts[1], parts[2], total_bytes, free_bytes=free_bytes), parts[5] == "Enabled"


def _mebibytes(said: str) -> int:
    """In bytes; nothing where a driver says [N/A], as some do."""
    return int(float(said) * 2**20) if said.replace(".", "", 1).isdigit() else 0


def _instances_of(listed: str) -> dict[int, list[Gpu]]:
    """The MIG instances of each GPU in `nvidia-smi -L`: "  MIG 1g.10gb  Device  0: (UUID: MIG-…)"."""
    instances: dict[int, list[Gpu]] = {}
    index = -1
    for line in listed.splitlines():
        if gpu := _GPU_LINE.match(line):
            index = int(gpu[1])
        elif instance := _MIG_LINE.match(line):
            profile, _, uuid = instance.groups()
            memory = _MIG_MEMORY.search(profile)
            size_bytes = int(memory[1]) * 2**30 if memory else 0
            instances.setdefault(index, []).append(Gpu(index, uuid, f"MIG {profile}", size_bytes, is_instance=True))
    return instances
