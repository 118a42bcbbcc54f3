"""When a rank fails, it says why; when another one fails because of it, it says that."""

from __future__ import annotations

import math

import pytest
import torch

from labs.failures import CannotStartError, name_cause
from labs.model import build_model
from labs.probes.finite import Watch
from labs.spec import LAB_MODELS
from tests.labs.ranks import SMALL, spec_of


def failures(done):
    return {e["rank"]: e["detail"] for e in done.of_kind("phase") if e["phase"] == "failed"}


@pytest.mark.slow
def test_survivors_of_a_killed_rank_report_that_they_lost_it(run):
    fault = {"kind": "kill", "rank": 1, "step": 3}
    done = run(spec_of({"data": 3}, training={"steps": 5}, faults=[fault]))
    assert done.returncode != 0
    assert [event["step"] for event in done.of_kind("step")] == [1, 2]
    found = failures(done)
    assert set(found) == {0, 2}  # the killed one cannot say anything
    assert {detail["cause"] for detail in found.values()} == {"lost another rank"}
    assert any("on purpose" in event["line"] for event in done.of_kind("log", rank=1))


@pytest.mark.slow
def test_the_rank_that_failed_first_is_told_from_the_one_that_lost_it(program):
    done = program("mishap.py", spec_of({"data": 2, "zero": 3}), MISHAP="raise")
    assert done.returncode != 0
    found = failures(done)
    assert found[1] == {"cause": "ValueError", "message": "the text is unreadable"}
    assert found[0]["cause"] == "lost another rank"
    log = [event["line"] for event in done.of_kind("log", rank=1)]
    assert log[0].startswith("Traceback")
    assert log[-1] == "ValueError: the text is unreadable"
    assert len(log) <= 20
    assert "unreadable" in done.stderr


@pytest.mark.slow
def test_a_loss_that_is_no_number_ends_the_run_and_says_where_it_came_from(program):
    done = program("mishap.py", spec_of({"data": 1}), MISHAP="nan")
    assert done.returncode == 1
    assert done.losses() == []
    where = "First: the last norm's output, in forward of step 1 on rank 0."
    assert failures(done) == {0: {"cause": "NaN", "message": f"The loss of step 1 is NaN. {where}"}}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("parallel", "rank", "layer", "others"),
    [
        ({"pipeline": 2, "zero": 0}, 1, 4, {0}),
        ({"data": 2, "zero": 3}, 0, 3, {1}),  # gathered by both: the first of them
    ],
    ids=["pipeline", "fsdp"],
)
def test_the_first_value_that_is_no_number_is_named_by_step_layer_and_rank(run, parallel, rank, layer, others):
    """In step 3, which is probed and looked at in time as well."""
    fault = {"kind": "nan", "rank": rank, "step": 3}
    done = run(spec_of(parallel, model={**SMALL, "layers": 4}, training={"steps": 5}, faults=[fault]))
    assert [event["step"] for event in done.of_kind("step")] == [1, 2]
    found = failures(done)
    assert found[rank]["cause"] == "NaN"
    where = f"layer {layer}'s attention output, in forward of step 3 on rank {rank}."
    assert found[rank]["message"] == f"The loss of step 3 is NaN. First: {where}"
    assert {found[other]["cause"] for other in others} == {"lost another rank"}


def test_a_gradient_that_is_no_number_is_told_from_the_loss_it_leads_to() -> None:
    model = build_model(LAB_MODELS["gpt-mini"], 16, 1)
    watch = Watch([model], range(2))
    tokens = torch.randint(256, (2, 17), generator=torch.Generator().manual_seed(1))

    def step(spoil: bool) -> None:
        watch.begin()
        handle = model.blocks[1].mlp.register_full_backward_pre_hook(
            lambda _module, gradients: (gradients[0] * (math.nan if spoil else 1.0),)
        )
        model(tokens[:, :-1], tokens[:, 1:]).backward()
        handle.remove()

    step(spoil=False)
    assert watch.first(1) is None
    step(spoil=True)
    step(spoil=False)  # whatever the update has made of it
    found = watch.first(3)
    assert str(found) == "the gradient of layer 2's MLP output, in backward of step 2 on rank 0"
    step(spoil=False)
    assert watch.first(4) is None, "two steps back it would have shown"


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (MemoryError(), "out of memory"),
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"), "out of memory"),
        (RuntimeError("[../pair.cc:553] Connection closed by peer [127.0.0.1]:4711"), "lost another rank"),
        (RuntimeError("Timed out waiting 120000ms for recv operation to complete"), "lost another rank"),
        (torch.distributed.DistBackendError("NCCL: remote process exited or there was an error"), "lost another rank"),
        (RuntimeError("shape mismatch"), "RuntimeError"),
        (ValueError("connection closed by peer"), "ValueError"),
        (CannotStartError("no such device", "..."), "no such device"),
    ],
)
def test_causes_have_names(error, cause):
    assert name_cause(error) == cause


def test_the_cpu_allocators_own_words_are_known():
    with pytest.raises(RuntimeError) as refused:
        torch.empty(10**15)
    assert name_cause(refused.value) == "out of memory"
