"""`rankzero doctor gpu`: what it says of a machine, from what driver, PyTorch and environment say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.worker.test_smi import _answers
from worker.doctor import diagnose
from worker.smi import Gpu, GpuListing

GPUS = tuple(Gpu(i, f"GPU-{c * 4}", "NVIDIA H100 80GB HBM3", 80 * 2**30) for i, c in enumerate("ab"))
SEEN = {"name": "NVIDIA H100", "uuid": "", "compute": "9.0", "total_bytes": 2**36, "free_bytes": 2**35, "bf16": True}
GOOD: dict[str, Any] = {
    "torch": "2.13.0",
    "built_for_cuda": "12.8",
    "available": True,
    "nccl": "2.27.3",
    "devices": [SEEN, SEEN],
    "all_reduce": "ok",
}


@pytest.fixture(autouse=True)
def smi_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _answers(
        tmp_path, monkeypatch, "0, GPU-aaaa, H100, 81559, 81000, Disabled\n1, GPU-bbbb, H100, 81559, 81000, Disabled\n"
    )


def _said(
    listing: GpuListing | None = None, torch: dict[str, Any] = GOOD, asked: str = "auto", **variables: str
) -> str:
    return "\n".join(map(str, diagnose(listing or GpuListing(GPUS), torch, variables, asked)))


def test_a_machine_that_is_well_has_nothing_wrong() -> None:
    said = _said()
    assert "wrong" not in said
    for part in ("GPU-aaaa", "built for CUDA 12.8", "32.0 of 64.0 GiB free", "NCCL", "2.27.3", "a worker of auto"):
        assert part in said


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"listing": GpuListing(trouble="the driver hangs.")}, "nvidia-smi              the driver hangs."),
        (
            {"torch": {"trouble": "PyTorch has not answered for 120 s"}},
            "PyTorch                 PyTorch has not answered",
        ),
        ({"torch": GOOD | {"built_for_cuda": None, "nccl": None, "devices": []}}, "2.13.0, built for the CPU"),
        ({"torch": GOOD | {"devices": [SEEN]}}, "1 of 2 GPUs that the driver lists"),
        ({"torch": GOOD | {"all_reduce": "failed: no route"}}, "failed: no route"),
        ({"asked": "cuda:7"}, "there is no GPU 7 here. GPUs here: 0, 1."),
    ],
)
def test_what_is_in_the_way_is_said(change: dict[str, Any], says: str) -> None:
    wrong = [line for line in _said(**change).splitlines() if line.startswith("wrong")]
    assert any(says in line for line in wrong), wrong


def test_a_name_that_cuda_does_not_know_hides_all_behind_it() -> None:
    one = GOOD | {"devices": [SEEN]}
    said = _said(torch=one, CUDA_VISIBLE_DEVICES="GPU-aaaa,GPU-gone,GPU-bbbb")
    assert "leaves GPU-aaaa: CUDA stops at the first name it does not know" in said


@pytest.mark.parametrize(
    ("found", "says"),
    [
        ({"no_sandbox": "bubblewrap is not installed"}, "note  code labs               no sandbox: bubblewrap is not"),
        (
            {"no_group": "cgroup v2 is not mounted"},
            "limits for each rank alone (1 GiB), for there is no control group",
        ),
        ({}, "ok    code labs               in sandboxes; all ranks of a program together: 3 GiB"),
    ],
)
def test_what_holds_learners_programs_is_said(found: dict[str, str], says: str) -> None:
    every = {"no_sandbox": None, "no_group": None, "most_bytes": 3 * 2**30, **found}
    assert says in _said(torch=GOOD | {"code_labs": every})


def test_the_environment_of_nccl_is_shown_with_whether_ranks_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NCCL_DEBUG", "INFO")
    assert "INFO (passed on to ranks)" in _said(NCCL_DEBUG="INFO")
    assert "1 (not passed on to ranks)" in _said(NVIDIA_STRANGE="1")
