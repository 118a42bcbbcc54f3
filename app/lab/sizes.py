"""How large a run may be on devices as their worker describes them: their free memory, and their speed by theory.

The one rule for submission, for placement by the worker, and for why nobody takes a run. Of a worker that does not say
what is free, as older ones do not, a laptop's run is taken.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from labs.spec import LAPTOP, Precision, RunSize, RunSpec, check_size, cpu_size, gpu_size

Device = Mapping[str, Any]
Kind = Literal["cuda", "cpu"]
_SUSTAINED = 0.4  # of its peak, which a training keeps up that fills a GPU


def gpus_for_ranks(devices: Sequence[Device], ranks: int) -> list[Device]:
    """GPUs that so many ranks could be put on. A process sees one instance of a cut-up GPU at most, and all ranks of a
    run see the same devices: instances are for runs of one rank, which leave the whole GPUs to others."""
    instances = [device for device in devices if device.get("kind") == "mig"]
    whole = [device for device in devices if device.get("kind") == "cuda"]
    return [*instances, *whole] if ranks == 1 else whole


def sizes_on(devices: Sequence[Device], spec: RunSpec, where: str = "") -> dict[Kind, RunSize]:
    """By kind of device how large a run like `spec` may be there, what it takes first before the other. None where
    there is no device of its kind, or too few."""
    if spec.hosts > 1:  # each of several hosts has its part: what one laptop holds is no more than that
        return {"cpu": LAPTOP} if any(device.get("hosts") for device in devices) else {}
    ranks, found = spec.parallel.world_size, dict[Kind, RunSize]()
    gpus, cpu = gpus_for_ranks(devices, ranks), _cpu(devices)
    if spec.fits(len(gpus), has_cpu=False):
        each = [size_of_gpu(gpu, spec.training.precision, ranks, where) for gpu in gpus]
        found["cuda"] = sorted(each, key=lambda size: size.memory_bytes, reverse=True)[ranks - 1]
    if cpu is not None and spec.fits(0, has_cpu=True):
        found["cpu"] = size_of_cpu(cpu, where)
    return found


def gpus_for(devices: Sequence[Device], spec: RunSpec) -> list[Device]:
    """The GPUs that can hold a rank of `spec`; none where they are too few for all of its ranks."""
    ranks, precision = spec.parallel.world_size, spec.training.precision
    if spec.device == "cpu" or spec.hosts > 1:
        return []
    usable = gpus_for_ranks(devices, ranks)
    able = [gpu for gpu in usable if not check_size(spec, [size_of_gpu(gpu, precision, ranks)])]
    return able if spec.fits(len(able), has_cpu=False) else []


def kind_on(devices: Sequence[Device], spec: RunSpec) -> Kind | None:
    """What `spec` runs on among `devices` of one host: `auto` takes GPUs where they can hold it. None: it cannot."""
    if gpus_for(devices, spec):
        return "cuda"
    size = sizes_on(devices, spec).get("cpu")
    return "cpu" if size is not None and not check_size(spec, [size]) else None


def size_of_cpu(device: Device, where: str = "") -> RunSize:
    """All ranks of a run together."""
    free_bytes = device.get("free_bytes")
    if not free_bytes:
        return RunSize(where=where)
    return cpu_size(float(free_bytes), int(device.get("cores") or 1), where)


def size_of_gpu(device: Device, precision: Precision, ranks: int = 1, where: str = "") -> RunSize:
    """On `ranks` of such GPUs."""
    free_bytes = device.get("free_bytes")
    if not free_bytes:
        return RunSize(where=where)
    # only where there are GPUs: theory is a good part of a worker's start
    from app.theory.hardware import peak_called  # noqa: PLC0415

    name, memory = str(device.get("model", "")), float(device.get("memory_bytes") or 0.0)
    return gpu_size(float(free_bytes), ranks, _SUSTAINED * peak_called(name, memory, precision), where)


def _cpu(devices: Sequence[Device]) -> Device | None:
    return next((device for device in devices if device.get("kind") == "cpu"), None)
