"""What a worker may run on, and where a run goes. Found without torch: this process must stay light."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from worker import smi
from worker.smi import Gpu, GpuListing

if TYPE_CHECKING:
    from labs.spec import RunSpec
    from worker.launcher import Launch


class UnknownDevice(ValueError):
    """A device that was asked for and is not there."""


@dataclass(frozen=True)
class Placement:
    """Where a run goes: the environment that shows its ranks those devices and no others."""

    text: str
    environment: dict[str, str]
    gpus: tuple[str, ...] = ()  # by UUID
    launch: Callable[[RunSpec, Path, dict[str, str]], Launch] | None = None  # over several hosts; else as usual here
    way: str = ""  # how it is started then


@dataclass(frozen=True)
class Devices:
    """The devices a worker is bound to."""

    cpu: bool
    gpus: tuple[Gpu, ...]
    trouble: str = ""  # what keeps GPUs from being found
    # the machine's while no run of ours was on it
    free_bytes: int = field(default_factory=lambda: psutil.virtual_memory().available, compare=False)

    def place(self, spec: RunSpec, gpus_elsewhere: int = 0, taken: frozenset[str] = frozenset()) -> Placement | None:
        """Where `spec` can run here, or None. `auto` takes GPUs when there is one for every rank, and waits for those
        that are `taken` (by UUID).

        `gpus_elsewhere` is the most GPUs another worker has: an `auto` run that fits there is left to it.
        """
        # the clock and the control worker hold devices too, and never place a run: what runs are is loaded here
        from app.lab import work  # noqa: PLC0415
        from labs.command import RUN_BYTES  # noqa: PLC0415

        if spec.hosts > 1:
            return None
        described, ranks = self.describe(), spec.parallel.world_size
        kind = work.kind_on(described, spec)
        if kind == "cuda":
            chosen = [gpu for gpu in work.gpus_for(described, spec) if gpu["uuid"] not in taken][:ranks]
            if len(chosen) < ranks:
                return None
            # by UUID: CUDA numbers devices in an order of its own, and relative to what it may see
            uuids = tuple(str(gpu["uuid"]) for gpu in chosen)
            text = f"{ranks} × {chosen[0]['model']}, NCCL"
            return Placement(text, {"CUDA_VISIBLE_DEVICES": ",".join(uuids), RUN_BYTES: ""}, uuids)
        if kind is None or (spec.device == "auto" and gpus_elsewhere >= ranks):
            return None
        text = f"CPU, {ranks} {'ranks' if ranks > 1 else 'rank'} over gloo"
        most_bytes = work.sizes_on(described, spec)["cpu"].memory_bytes
        return Placement(text, {"CUDA_VISIBLE_DEVICES": "", RUN_BYTES: f"{most_bytes:.0f}"})

    def describe(self) -> list[dict[str, object]]:
        """For the page of devices: name, how ranks talk, memory."""
        rows: list[dict[str, object]] = [
            {
                "kind": "mig" if gpu.is_instance else "cuda",
                "name": f"GPU {gpu.index}, {gpu.name}",
                "backend": "NCCL",
                "model": gpu.name,
                "memory_bytes": gpu.memory_bytes,
                "free_bytes": gpu.free_bytes or gpu.memory_bytes,
                "uuid": gpu.uuid,
            }
            for gpu in self.gpus
        ]
        if self.cpu:
            cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
            name = f"CPU, {cores} {'cores' if cores > 1 else 'core'}"
            rows.append(
                {
                    "kind": "cpu",
                    "name": name,
                    "model": cpu_model(),
                    "backend": "gloo",
                    "memory_bytes": psutil.virtual_memory().total,
                    "free_bytes": self.free_bytes,
                    "cores": cores,
                }
            )
        return rows


def find_devices(asked: str) -> Devices:
    """The devices of `auto`, `cpu` or `cuda:0,1`. Raises UnknownDevice naming what there is."""
    if asked == "cpu":
        return Devices(cpu=True, gpus=())
    wanted = _indices(asked)
    listing = visible(smi.look(), os.environ.get("CUDA_VISIBLE_DEVICES"))
    if wanted is None:
        return Devices(cpu=True, gpus=listing.gpus, trouble=listing.trouble)
    by_index: dict[int, list[Gpu]] = {}
    for gpu in listing.gpus:
        by_index.setdefault(gpu.index, []).append(gpu)
    missing = [index for index in wanted if index not in by_index]
    if missing:
        there = ", ".join(str(index) for index in by_index) or "none"
        why = f" {listing.trouble}" if listing.trouble else ""
        raise UnknownDevice(f"--devices {asked}: there is no GPU {missing[0]} here. GPUs here: {there}.{why}")
    return Devices(cpu=False, gpus=tuple(gpu for index in wanted for gpu in by_index[index]))


def _indices(asked: str) -> list[int] | None:
    """The GPUs that are named; None for `auto`. Raises UnknownDevice for what is neither."""
    if asked == "auto":
        return None
    if asked.startswith("cuda:") and all(part.isdecimal() for part in asked[5:].split(",")):
        return list(dict.fromkeys(int(part) for part in asked[5:].split(",")))
    raise UnknownDevice(f"--devices {asked}: not understood. Accepted: auto, cpu, or cuda:0,1.")


def visible(listing: GpuListing, allowed: str | None) -> GpuListing:
    """Of `listing` what CUDA_VISIBLE_DEVICES leaves: numbers, or the beginnings of UUIDs. CUDA stops at the first that
    it does not know, and so do we."""
    if allowed is None:
        return listing
    left: list[Gpu] = []
    for name in [part.strip() for part in allowed.split(",")]:
        gpu = next((gpu for gpu in listing.gpus if _is_called(gpu, name)), None)
        if gpu is None:
            break
        left += [gpu] if gpu not in left else []
    return GpuListing(tuple(left), listing.trouble)


def _is_called(gpu: Gpu, name: str) -> bool:
    if name.isdecimal():
        return not gpu.is_instance and int(name) == gpu.index
    return bool(name) and gpu.uuid.startswith(name)


def cpu_model() -> str:
    """The processor's name."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


if __name__ == "__main__":  # `python -m worker.devices cuda:0,1`: whether there is a worker for them
    try:
        find_devices(sys.argv[1])
    except UnknownDevice as error:
        sys.exit(str(error))
