"""How large a run may be by what its device has free and how fast it is, alike when it is asked for and when it is
placed."""

from __future__ import annotations

import re
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.core.db import Database, database_time
from app.core.errors import SpecError
from app.lab import presence, service, takers
from app.lab.sizes import kind_on, size_of_cpu, size_of_gpu, sizes_on
from app.theory.hardware import GPUS, gpu_called, peak_called
from labs.spec import LAPTOP, RunSpec, of_any_size, parse_run_spec
from tests.conftest import NOW
from worker.devices import Devices
from worker.smi import Gpu

HTML = {"Accept": "text/html"}
GB = 10**9
H100 = "NVIDIA H100 80GB HBM3"
# 1.1B parameters: 17 GB of state on each of its ranks
LARGE: dict[str, Any] = {
    "model": {"layers": 22, "hidden": 2048, "heads": 16, "vocab": 256},
    "training": {
        "sequence": 2048,
        "micro_batch": 4,
        "steps": 20,
        "precision": "bf16-mixed",
        "state_layout": "torch-amp",
    },
    "parallel": {"data": 2, "zero": 3},
}


def _spec(**changed: Any) -> RunSpec:
    return parse_run_spec({**LARGE, **changed}, sizes=of_any_size)


def _gpu(free: float, number: int = 0) -> dict[str, object]:
    return {
        **{"kind": "cuda", "name": f"GPU {number}, {H100}", "model": H100, "backend": "NCCL", "uuid": f"GPU-{number}"},
        **{"memory_bytes": 80 * GB, "free_bytes": int(free)},
    }


def _cpu(free: float, cores: int = 2) -> dict[str, object]:
    named = {"kind": "cpu", "name": "CPU", "backend": "gloo", "cores": cores}
    return {**named, "memory_bytes": int(2 * free), "free_bytes": int(free)}


OLD_CPU: dict[str, object] = {"kind": "cpu", "name": "CPU", "backend": "gloo", "memory_bytes": 64 * GB}


def _announce(database: Database, name: str, *devices: dict[str, object]) -> None:
    with database.write() as session:
        presence.announce_worker(session, name, "device", list(devices), database_time(session), None)


def _refused(database: Database, spec: dict[str, Any]) -> dict[str, Any]:
    with database.write() as session, pytest.raises(SpecError) as refused:
        service.submit_run(session, 1, spec, None, NOW)
    return {each.field: each for each in refused.value.violations}


@pytest.mark.parametrize(
    ("free", "cores", "memory", "parameters", "flops"),
    [
        (12 * GB, 2, 6e9, 50e6, 2e14),  # a laptop
        (4 * GB, 2, 3.6e9, 30e6, 2e14),  # one on which much else is open
        (400 * GB, 64, 200e9, 5e9 / 3, 6.4e15),
    ],
)
def test_a_cpu_takes_a_laptops_run_or_half_of_what_is_free(
    free: int, cores: int, memory: float, parameters: float, flops: float
) -> None:
    size = size_of_cpu(_cpu(free, cores))
    assert (size.memory_bytes, size.parameters, size.flops) == pytest.approx((memory, parameters, flops))


def test_a_gpu_takes_what_it_can_hold_and_an_hours_work() -> None:
    alone, eight = size_of_gpu(_gpu(80 * GB), "bf16-mixed"), size_of_gpu(_gpu(80 * GB), "bf16-mixed", 8)
    assert alone.memory_bytes == pytest.approx(72e9)
    assert alone.parameters == pytest.approx(4.5e9)
    assert alone.flops == pytest.approx(3600 * 0.4 * 989e12)
    assert (eight.memory_bytes, eight.flops) == pytest.approx((8 * 72e9, 8 * alone.flops))
    assert size_of_gpu(_gpu(80 * GB), "fp32").flops == pytest.approx(3600 * 0.4 * 67e12), "without tensor cores"


@pytest.mark.parametrize(
    ("said", "memory", "name"),
    [
        (H100, 80 * GB, "h100-80gb"),
        ("NVIDIA H100 PCIe", 80 * GB, "h100-pcie-80gb"),
        ("NVIDIA H100", 99 * GB, "h100-96gb"),
        ("NVIDIA A100-SXM4-40GB", 40 * GB, "a100-40gb"),
        ("NVIDIA A100-PCIE-80GB", 80 * GB, "a100-80gb"),
        ("Tesla V100-SXM2-16GB", 16 * GB, "v100-16gb"),
        ("NVIDIA GeForce RTX 4090", 24 * GB, "rtx-4090"),
        ("NVIDIA GB200", 186 * GB, "gb200-186gb"),
        ("NVIDIA GeForce RTX 2060", 6 * GB, None),
        ("MIG 1g.10gb", 10 * GB, None),
        ("", 0, None),
    ],
)
def test_a_gpu_is_known_by_what_its_driver_calls_it(said: str, memory: int, name: str | None) -> None:
    found = gpu_called(said, memory)
    assert (found.name if found else None) == name
    slowest = min(gpu.peaks.get("fp32", 1e18) for gpu in GPUS.values())
    assert (peak_called(said, memory, "bf16-mixed") == slowest) == (name is None)


def test_auto_takes_the_gpus_that_can_hold_it_else_the_cpu() -> None:
    assert kind_on([_gpu(79 * GB, 0), _gpu(79 * GB, 1), _cpu(12 * GB)], _spec()) == "cuda"
    assert kind_on([_gpu(79 * GB, 0), _gpu(5 * GB, 1), _cpu(12 * GB)], _spec()) is None, "one GPU is full"
    small = parse_run_spec({"model": "gpt-mini", "parallel": {"data": 2}})
    assert kind_on([_gpu(79 * GB, 0), _gpu(GB // 100, 1), _cpu(12 * GB)], small) == "cpu"
    assert kind_on([_gpu(GB // 100)], small) is None
    assert sizes_on([OLD_CPU], small) == {"cpu": LAPTOP}, "an older worker says nothing of what is free"
    assert sizes_on([_gpu(GB), _cpu(GB)], parse_run_spec({"model": "gpt-mini", "device": "cuda"})).keys() == {"cuda"}


def test_what_a_gpu_worker_holds_is_taken_and_said_of_it_otherwise(client: TestClient, database: Database) -> None:
    alone = _refused(database, LARGE)
    assert alone.keys() == {"training.sequence"}, "nobody is there: a laptop's run"
    assert alone["training.sequence"].accepted == "2 to 1,024"
    _announce(database, "small", _cpu(4 * GB))
    refused = _refused(database, {**LARGE, "training": {"steps": 2}})["model.hidden"]
    assert "about 1,108M parameters; a run may have 30M." in refused.message, "one worker has no name to tell"
    _announce(database, "large", _gpu(79 * GB, 0), _gpu(79 * GB, 1))
    with database.write() as session:
        run = service.submit_run(session, 1, LARGE, None, NOW)
        assert takers.why_nobody_takes(session, _spec(), NOW) is None
    five = _refused(database, {**LARGE, "model": {**LARGE["model"], "hidden": 8192, "heads": 64}})
    assert five["model.layers"].message.endswith("a run may have 8,888M on worker large.")
    shown = client.get("/lab/devices", headers=HTML).text
    assert "A run of up to 71.1 GB, 4.44B parameters" in " ".join(shown.split())
    assert re.search(r'class="sub" id="room-now">A run of up to', shown), "`num` would keep it from wrapping on a phone"
    with database.write() as session:
        presence.retire_worker(session, "large")
        why = takers.why_nobody_takes(session, RunSpec.model_validate(run.spec), NOW)
    assert why is not None
    assert why.startswith("It is too large for what is there.")
    form = client.post("/lab/runs", data={"layers": "60", "key": "k"}, headers=HTML)
    assert form.status_code == 422
    assert "a run may have" in form.text


def test_a_worker_places_only_what_its_devices_hold() -> None:
    gpus = tuple(Gpu(n, f"GPU-{n}", H100, 80 * GB, free_bytes=free * GB) for n, free in enumerate((79, 3, 79)))
    devices = Devices(cpu=True, gpus=gpus, free_bytes=12 * GB)
    placed = devices.place(_spec())
    assert placed is not None
    assert placed.gpus == ("GPU-0", "GPU-2"), "the one in use by somebody else is left alone"
    assert devices.place(_spec(), taken=frozenset({"GPU-2"})) is None, "it waits"
    assert devices.place(_spec(parallel={"data": 2})) is not None
    assert Devices(cpu=True, gpus=(), free_bytes=12 * GB).place(_spec()) is None
    there = Devices(cpu=True, gpus=(), free_bytes=40 * GB).place(parse_run_spec({"model": "gpt-mini"}))
    assert there is not None
    assert there.environment["RANKZERO_RUN_BYTES"] == "20000000000", "what its ranks are held to"
    assert Devices(True, gpus) == Devices(True, gpus, free_bytes=1), "that memory is taken and let go is no news"
