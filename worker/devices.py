"""What a worker may run on, and where a run goes. Found without torch: this process must stay light."""

from __future__ import annotations

import os
import platform
import subprocess
from dataclasses import dataclass
from pathlib import Path

import psutil

from labs.spec import RunSpec

NVIDIA_SMI = ["nvidia-smi", "--query-gpu=index,uuid,name,memory.total", "--format=csv,noheader,nounits"]


class UnknownDevice(ValueError):
    """A device that was asked for and is not there."""


@dataclass(frozen=True)
class Gpu:
    """One CUDA device as the driver numbers it."""

    index: int
    uuid: str
    name: str
    memory_bytes: int


@dataclass(frozen=True)
class Placement:
    """Where a run goes: the environment that shows its ranks those devices and no others."""

    text: str
    environment: dict[str, str]


@dataclass(frozen=True)
class Devices:
    """The devices a worker is bound to."""

    cpu: bool
    gpus: tuple[Gpu, ...]

    def place(self, spec: RunSpec, gpus_elsewhere: int = 0) -> Placement | None:
        """Where `spec` can run here, or None. `auto` takes GPUs when there is one for every rank.

        `gpus_elsewhere` is the most GPUs another worker has: an `auto` run that fits there is left to it.
        """
        ranks = spec.parallel.world_size
        found = spec.fits(len(self.gpus), self.cpu)
        if found == "cuda":
            chosen = self.gpus[:ranks]
            # by UUID: CUDA numbers devices in an order of its own, and relative to what it may see
            visible = ",".join(gpu.uuid for gpu in chosen)
            return Placement(f"{ranks} × {chosen[0].name}, NCCL", {"CUDA_VISIBLE_DEVICES": visible})
        if found is None or (spec.device == "auto" and gpus_elsewhere >= ranks):
            return None
        return Placement(f"CPU, {ranks} {'ranks' if ranks > 1 else 'rank'} over gloo", {"CUDA_VISIBLE_DEVICES": ""})

    def describe(self) -> list[dict[str, object]]:
        """For the page of devices: name, how ranks talk, memory."""
        found: list[dict[str, object]] = [
            {
                "kind": "cuda",
                "name": f"GPU {gpu.index}, {gpu.name}",
                "backend": "NCCL",
                "memory_bytes": gpu.memory_bytes,
            }
            for gpu in self.gpus
        ]
        if self.cpu:
            cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
            name = f"CPU, {cores} {'cores' if cores > 1 else 'core'}"
            memory = psutil.virtual_memory().total
            found.append({"kind": "cpu", "name": name, "model": cpu_model(), "backend": "gloo", "memory_bytes": memory})
        return found


def find_devices(asked: str) -> Devices:
    """The devices of `auto`, `cpu` or `cuda:0,1`. Raises UnknownDevice naming what there is."""
    gpus = list_gpus()
    if asked == "auto":
        return Devices(cpu=True, gpus=gpus)
    if asked == "cpu":
        return Devices(cpu=True, gpus=())
    if asked.startswith("cuda:") and all(part.isdigit() for part in asked[5:].split(",")):
        wanted = [int(part) for part in asked[5:].split(",")]
        by_index = {gpu.index: gpu for gpu in gpus}
        missing = [index for index in wanted if index not in by_index]
        if missing:
            there = ", ".join(str(index) for index in by_index) or "none"
            raise UnknownDevice(f"--devices {asked}: there is no GPU {missing[0]} here. GPUs here: {there}.")
        return Devices(cpu=False, gpus=tuple(by_index[index] for index in wanted))
    raise UnknownDevice(f"--devices {asked}: not understood. Accepted: auto, cpu, or cuda:0,1.")


def list_gpus() -> tuple[Gpu, ...]:
    """CUDA devices as the driver lists them; none when there is no driver."""
    try:
        said = subprocess.run(NVIDIA_SMI, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ()
    if said.returncode != 0:
        return ()
    gpus = [gpu for line in said.stdout.splitlines() if (gpu := _gpu_of(line)) is not None]
    allowed = os.environ.get("CUDA_VISIBLE_DEVICES")
    if allowed is None:
        return tuple(gpus)
    names = [name.strip() for name in allowed.split(",") if name.strip()]
    return tuple(gpu for gpu in gpus if any(name == str(gpu.index) or gpu.uuid.startswith(name) for name in names))


def _gpu_of(line: str) -> Gpu | None:
    parts = [part.strip() for part in line.split(",")]
    if len(parts) != 4 or not parts[0].isdigit():
        return None
    memory = float(parts[3]) if parts[3].replace(".", "").isdigit() else 0.0  # some drivers say [N/A]
    return Gpu(int(parts[0]), parts[1], parts[2], int(memory) * 2**20)


def cpu_model() -> str:
    """The processor's name."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
