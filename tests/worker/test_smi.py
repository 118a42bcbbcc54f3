"""GPUs as a program says that may be missing, fail, hang or talk nonsense; and which of them a worker may use."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from labs import run
from labs.command import RUN_BYTES
from labs.spec import of_any_size, parse_run_spec
from tests.support.pace import slack_seconds
from worker import by_hand, smi
from worker.devices import Devices, UnknownDevice, find_devices, visible
from worker.smi import Gpu, GpuListing

WHOLE = """0, GPU-aaaa, NVIDIA H100 80GB HBM3, 81559, 60000, [N/A]
1, GPU-bbbb, NVIDIA H100 80GB HBM3, 81559, 81000, Disabled
"""
CUT_UP = """0, GPU-aaaa, NVIDIA H100 80GB HBM3, 81559, 81000, Disabled
1, GPU-bbbb, NVIDIA H100 80GB HBM3, 81559, [N/A], Enabled
"""
LISTED = """GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-aaaa)
GPU 1: NVIDIA H100 80GB HBM3 (UUID: GPU-bbbb)
  MIG 3g.40gb     Device  0: (UUID: MIG-cccc)
  MIG 1g.10gb     Device  1: (UUID: MIG-dddd)
"""


def _install(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    program = folder / "nvidia-smi"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


def _answers(folder: Path, monkeypatch: pytest.MonkeyPatch, query: str) -> None:
    (folder / "query").write_text(query)
    (folder / "listed").write_text(LISTED)
    _install(folder, monkeypatch, f'case "$1" in -L) cat {folder}/listed;; *) cat {folder}/query;; esac')


def test_no_program_means_no_gpus_and_no_trouble(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert smi.look() == GpuListing()
    assert find_devices("auto").cpu


def test_one_that_hangs_is_given_up_on_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _install(tmp_path, monkeypatch, "exec sleep 600")
    began = time.monotonic()
    found = smi.look(seconds=0.3)
    assert time.monotonic() - began < 5 + slack_seconds()
    assert found.gpus == ()
    assert "has not answered for 0.3 s: the driver hangs" in found.trouble


@pytest.mark.parametrize(
    ("script", "trouble"),
    [
        ("echo NVIDIA-SMI has failed because it could not talk to the driver; exit 9", "ended with 9: NVIDIA-SMI has"),
        ("exit 3", "ended with 3: nothing"),
    ],
)
def test_what_keeps_gpus_from_being_found_is_said_and_the_cpu_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, trouble: str
) -> None:
    _install(tmp_path, monkeypatch, script)
    found = find_devices("auto")
    assert found.cpu
    assert trouble in found.trouble
    with pytest.raises(UnknownDevice, match=r"there is no GPU 0 here\. GPUs here: none.*ended with"):
        find_devices("cuda:0")


def test_nonsense_is_no_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _answers(tmp_path, monkeypatch, "warning: infoROM is corrupted\n\n,,,,\n" + WHOLE)
    found = smi.look().gpus
    assert [(gpu.uuid, gpu.free_bytes // 2**20) for gpu in found] == [("GPU-aaaa", 60000), ("GPU-bbbb", 81000)]


def test_instances_stand_for_a_gpu_that_is_cut_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _answers(tmp_path, monkeypatch, CUT_UP)
    whole, *instances = smi.look().gpus
    assert whole.uuid == "GPU-aaaa"
    assert [(each.uuid, each.name, each.memory_bytes) for each in instances] == [
        ("MIG-cccc", "MIG 3g.40gb", 40 * 2**30),
        ("MIG-dddd", "MIG 1g.10gb", 10 * 2**30),
    ]
    devices = find_devices("cuda:1")
    assert [gpu.uuid for gpu in devices.gpus] == ["MIG-cccc", "MIG-dddd"]
    one, two = (parse_run_spec({"model": "gpt-mini", "device": "cuda", "parallel": {"data": n}}) for n in (1, 2))
    placed = devices.place(one)
    assert placed is not None
    assert placed.environment["CUDA_VISIBLE_DEVICES"] == "MIG-cccc"
    assert devices.place(two) is None, "a process sees one instance at most"
    assert [each["kind"] for each in devices.describe()] == ["mig", "mig"]


def test_a_run_by_hand_is_placed_and_sized_by_what_these_devices_have_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _answers(tmp_path, monkeypatch, WHOLE)
    asked: list[list[str]] = []
    monkeypatch.setattr("labs.run.main", lambda arguments: asked.append(arguments) or 0)
    for name in ("CUDA_VISIBLE_DEVICES", RUN_BYTES):
        monkeypatch.setenv(name, "as it was")  # and is again, afterwards
        monkeypatch.delenv(name)
    two = {"model": {"layers": 24, "hidden": 1024, "heads": 16, "vocab": 256}, "parallel": {"data": 2, "zero": 3}}
    assert by_hand.main([json.dumps(two)]) == 0, "beyond a laptop's 50M parameters"
    assert (os.environ["CUDA_VISIBLE_DEVICES"], os.environ[RUN_BYTES]) == ("GPU-aaaa,GPU-bbbb", "")
    assert parse_run_spec(json.loads(asked[0][0]), sizes=of_any_size).parallel.data == 2
    refused = {
        "this machine": {**two, "model": {"layers": 128, "hidden": 8192, "heads": 64, "vocab": 256}},
        "3 ranks need a GPU each, and this machine shows 2.": {"model": "gpt-mini", "parallel": {"data": 3}},
    }
    for said, spec in refused.items():
        assert by_hand.main([json.dumps({**spec, "device": "cuda"})]) == run.EXIT_USAGE
        assert said in capsys.readouterr().err
    monkeypatch.setenv("PATH", "/nowhere")
    assert by_hand.main(["a file"]) == 0
    assert asked[1:] == [["a file"]], "no GPU can be here: nothing is looked at"


GPUS = tuple(Gpu(i, f"GPU-{c * 4}", "H200", 141 * 10**9) for i, c in enumerate("abc"))


@pytest.mark.parametrize(
    ("allowed", "left"),
    [
        (None, "abc"),
        ("", ""),
        ("2,0", "ca"),
        ("GPU-b", "b"),
        ("GPU-cccc,GPU-a", "ca"),
        ("1,7,0", "b"),  # CUDA stops at the first it does not know
        ("-1", ""),
        ("NoDevFiles", ""),
        ("1,1", "b"),
    ],
)
def test_what_is_visible_is_read_as_cuda_reads_it(allowed: str | None, left: str) -> None:
    assert "".join(gpu.uuid[4] for gpu in visible(GpuListing(GPUS), allowed).gpus) == left


def test_a_run_waits_for_gpus_that_are_taken_and_never_shares_one() -> None:
    devices = Devices(cpu=True, gpus=GPUS)
    two = parse_run_spec({"model": "gpt-mini", "parallel": {"data": 2}})
    placed = devices.place(two, taken=frozenset({"GPU-aaaa"}))
    assert placed is not None
    assert placed.gpus == ("GPU-bbbb", "GPU-cccc")
    assert devices.place(two, taken=frozenset({"GPU-aaaa", "GPU-cccc"})) is None, "not on the CPU instead"
