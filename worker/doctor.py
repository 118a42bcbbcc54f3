"""`rankzero doctor gpu`: what this machine has for runs, what is in the way, and what a worker would make of it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypedDict

from app.core.settings import settings
from labs.command import environment
from worker import smi
from worker.devices import Devices, UnknownDevice, find_devices, visible
from worker.smi import GpuListing

TORCH_SECONDS = 120.0  # loading torch and waking a driver
_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - it is looked at, nothing is written there
_LITTLE_SHARED_BYTES = 1 << 30  # NCCL's default buffers of eight ranks take a good part of it
_NCCL_PREFIXES = ("NCCL_", "TORCH_NCCL_", "CUDA_", "NVIDIA_")


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    verdict: Literal["ok", "note", "wrong"]
    what: str
    said: str

    def __str__(self) -> str:
        return f"{self.verdict:<6}{self.what:<24}{self.said}"


class SeenGpu(TypedDict):
    """A GPU as PyTorch sees it."""

    name: str
    uuid: str
    compute: str
    total_bytes: int
    free_bytes: int
    bf16: bool


class Holds(TypedDict):
    """What holds learners' programs: why there is no sandbox, and no control group for all ranks of one."""

    no_sandbox: str | None
    no_group: str | None
    most_bytes: int


class TorchSays(TypedDict, total=False):
    """What `labs.doctor` prints; `trouble` alone where it did not answer."""

    trouble: str
    torch: str
    built_for_cuda: str | None
    available: bool
    nccl: str | None
    devices: list[SeenGpu]
    all_reduce: str | None
    code_labs: Holds


def main() -> int:
    """0 where runs can use GPUs, 1 where they cannot."""
    listing = smi.look()
    torch_says = ask_torch()
    findings = list(diagnose(listing, torch_says, dict(os.environ), settings().devices))
    sys.stdout.write("\n".join(map(str, findings)) + "\n")
    is_usable = bool(listing.gpus) and not any(each.verdict == "wrong" for each in findings)
    sys.stdout.write("\nRuns can use GPUs.\n" if is_usable else "\nRuns use the CPU here.\n")
    return 0 if is_usable else 1


def ask_torch(seconds: float = TORCH_SECONDS) -> TorchSays:
    """What `labs.doctor` found, or why it did not say."""
    command = [sys.executable, "-m", "labs.doctor"]
    process = subprocess.Popen(
        command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        out, errors = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()  # and not waited for: a driver that hangs keeps it
        return {"trouble": f"PyTorch has not answered for {seconds:g} s: the driver hangs."}
    try:
        said: TorchSays = json.loads(out)
    except ValueError:
        last = (errors.strip().splitlines() or ["it said nothing"])[-1]
        return {"trouble": f"PyTorch ended with {process.returncode}: {last[:200]}"}
    return said


def diagnose(listing: GpuListing, torch_says: TorchSays, variables: Mapping[str, str], asked: str) -> Iterator[Finding]:
    """Everything worth knowing, in the order in which one thing needs the other."""
    yield from _driver(listing)
    yield from _visibility(listing, variables.get("CUDA_VISIBLE_DEVICES"))
    yield from _torch(listing, torch_says, variables.get("CUDA_VISIBLE_DEVICES"))
    yield from _nccl(torch_says, variables)
    yield from _worker(asked)
    yield from _code_labs(torch_says.get("code_labs"))


def _code_labs(holds: Holds | None) -> Iterator[Finding]:
    """What holds learners' programs, one by one and all ranks of one together."""
    if holds is None:
        return
    if holds["no_sandbox"] is not None:
        yield Finding("note", "code labs", f"no sandbox: {holds['no_sandbox']}")
        return
    none = holds["no_group"]
    said = f"in sandboxes; all ranks of a program together: {holds['most_bytes'] / 2**30:.0f} GiB, by a control group"
    if none is not None:
        said = f"in sandboxes; limits for each rank alone (1 GiB), for there is no control group: {none}"
    yield Finding("ok" if none is None else "note", "code labs", said)


def _driver(listing: GpuListing) -> Iterator[Finding]:
    path = shutil.which(smi.PROGRAM)
    if path is None:
        yield Finding("note", smi.PROGRAM, "is not on PATH: no NVIDIA driver here, or it is not seen in this container")
        return
    if listing.trouble:
        yield Finding("wrong", smi.PROGRAM, listing.trouble)
    for gpu in listing.gpus:
        size = f"{gpu.memory_bytes / 2**30:.0f} GiB" if gpu.memory_bytes else "memory unknown"
        only = "; for runs of one rank" if gpu.is_instance else ""
        yield Finding("ok", f"GPU {gpu.index}", f"{gpu.name}, {size}, {gpu.uuid}{only}")
    if not listing.gpus and not listing.trouble:
        yield Finding("wrong", smi.PROGRAM, f"{path} lists no GPU")


def _visibility(listing: GpuListing, allowed: str | None) -> Iterator[Finding]:
    if allowed is None:
        return
    left = visible(listing, allowed).gpus
    names = [name.strip() for name in allowed.split(",") if name.strip()]
    said = f"{allowed or '(empty)'} leaves {', '.join(gpu.uuid for gpu in left) or 'no GPU'}"
    is_short = len(left) < len(set(names)) and bool(listing.gpus)
    more = ": CUDA stops at the first name it does not know" if is_short else ""
    yield Finding("wrong" if is_short else "note", "CUDA_VISIBLE_DEVICES", said + more)


def _torch(listing: GpuListing, said: TorchSays, allowed: str | None) -> Iterator[Finding]:
    if "trouble" in said:
        yield Finding("wrong", "PyTorch", said["trouble"])
        return
    cuda = said["built_for_cuda"]
    expected = visible(listing, allowed).gpus
    verdict: Literal["ok", "note", "wrong"] = "ok" if cuda else "wrong" if expected else "note"
    yield Finding(verdict, "PyTorch", f"{said['torch']}, {f'built for CUDA {cuda}' if cuda else 'built for the CPU'}")
    for device in said["devices"]:
        free = f"{device['free_bytes'] / 2**30:.1f} of {device['total_bytes'] / 2**30:.1f} GiB free"
        bf16 = "bf16" if device["bf16"] else "no bf16"
        yield Finding("ok", "  sees", f"{device['name']}, compute {device['compute']}, {free}, {bf16}")
    seen = len(said["devices"])
    whole = [gpu for gpu in expected if not gpu.is_instance] or expected[:1]  # of instances CUDA sees one
    if cuda and seen != len(whole):
        yield Finding("wrong", "  sees", f"{seen} of {len(whole)} GPUs that the driver lists")


def _nccl(said: TorchSays, variables: Mapping[str, str]) -> Iterator[Finding]:
    if said.get("nccl"):
        yield Finding("ok", "NCCL", str(said["nccl"]))
    if came := said.get("all_reduce"):
        verdict: Literal["ok", "wrong"] = "ok" if came == "ok" else "wrong"
        yield Finding(verdict, "  all-reduce, one rank", came)
    for name in sorted(variables):
        if name.startswith(_NCCL_PREFIXES) and name != "CUDA_VISIBLE_DEVICES":
            passed = "passed on to ranks" if name in environment() else "not passed on to ranks"
            yield Finding("note", name, f"{variables[name]} ({passed})")
    if said.get("devices") and _SHARED_MEMORY.is_dir():
        size = shutil.disk_usage(_SHARED_MEMORY).total
        little = ": little for NCCL; in Docker raise shm_size" if size < _LITTLE_SHARED_BYTES else ""
        yield Finding("wrong" if little else "ok", str(_SHARED_MEMORY), f"{size / 2**30:.1f} GiB{little}")


def _worker(asked: str) -> Iterator[Finding]:
    try:
        devices: Devices = find_devices(asked)
    except UnknownDevice as error:
        yield Finding("wrong", "RANKZERO_DEVICES", str(error))
        return
    names = ", ".join(str(each["name"]) for each in devices.describe())
    yield Finding("ok", f"a worker of {asked}", names or "has no device")


if __name__ == "__main__":
    sys.exit(main())
