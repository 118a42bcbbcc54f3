"""What a rank's memory is made of, against theory and against two other instruments."""

from __future__ import annotations

import math

import pytest

from tests.labs.ranks import DDP, FSDP, LAYOUTS, SMALL, kept_blocks, spec_of, twelve_rows
from tests.labs.test_ledger import BLOCK, LAYERS, OUTSIDE, PARAMETERS, padded_bytes

TENSORS = len(BLOCK * LAYERS + OUTSIDE)
STEP_COUNTERS_BYTES = 4 * TENSORS  # AdamW counts its steps for each parameter tensor, in an fp32 number
KINDS = ("parameters", "gradients", "optimizer", "activations", "temporary")


def local_elements(rank: int, ranks: int) -> int:
    """Elements of all parameters that fall to `rank`, padding not counted."""
    pieces = [math.ceil(rows / ranks) for rows, _ in BLOCK * LAYERS + OUTSIDE]
    shapes = BLOCK * LAYERS + OUTSIDE
    return sum(
        max(0, min(rows - rank * piece, piece)) * columns for piece, (rows, columns) in zip(pieces, shapes, strict=True)
    )


@pytest.mark.slow
@pytest.mark.parametrize("layout", [(1, 2, 6), (2, 3, 2), (4, 1, 3)], ids=lambda layout: f"{layout[0]}-ranks")
def test_ddp_holds_sixteen_bytes_a_parameter_on_every_rank(run, layout):
    done = run(twelve_rows(DDP, *layout))
    for rank in range(layout[0]):
        state = done.summary(rank)["model_state_bytes"]
        assert state["parameters"] == state["gradients"] == 4 * PARAMETERS
        assert state["optimizer"] == 8 * PARAMETERS + STEP_COUNTERS_BYTES
        assert state["total"] == pytest.approx(16 * PARAMETERS, rel=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: f"{layout[0]}-ranks")
def test_fsdp_holds_its_share_of_sixteen_bytes_a_parameter(run, layout):
    """Padding is held for parameters and gradients, but AdamW keeps moments only of what is there."""
    ranks = layout[0]
    done = run(twelve_rows(FSDP, *layout))
    for rank in range(ranks):
        state = done.summary(rank)["model_state_bytes"]
        share = padded_bytes(BLOCK * LAYERS + OUTSIDE, ranks) // ranks
        assert state["parameters"] == state["gradients"] == share
        assert state["optimizer"] == 8 * local_elements(rank, ranks) + STEP_COUNTERS_BYTES
        if ranks != 3:
            assert state["total"] == pytest.approx(16 * PARAMETERS / ranks, rel=0.01)


@pytest.mark.slow
def test_the_course_of_a_step(run):
    ddp, fsdp = run(twelve_rows(DDP, 2, 3, 2)), run(twelve_rows(FSDP, 2, 3, 2))
    for done in (ddp, fsdp):
        for rank in range(2):
            moments = {e["at"]: e["bytes"] for e in done.of_kind("memory", rank)}
            assert set(moments) == {
                "forward_start",
                "backward_start",
                "backward_end",
                "step_end",
                "activation_peak",
                "peak",
            }
            for found in moments.values():
                assert found["total"] == sum(found[kind] for kind in KINDS)
                assert found["total"] <= moments["peak"]["total"]
            assert moments["forward_start"]["activations"] == moments["step_end"]["activations"] == 0
            assert moments["backward_start"]["activations"] > 0
    for moment in ("forward_start", "backward_start"):
        assert (
            run(twelve_rows(DDP, 4, 1, 3)).memory(moment)["gradients"] == 4 * PARAMETERS
        )  # the buckets are always there
        assert run(twelve_rows(FSDP, 4, 1, 3)).memory(moment)["gradients"] == 0
    # The gathered outermost unit stays from forward to backward: a parameter, but not one that is kept.
    assert fsdp.memory("backward_start")["temporary"] >= padded_bytes(OUTSIDE, 2)


@pytest.mark.slow
def test_activations_are_what_one_counts_by_hand(run):
    """Every tensor that backward needs, in a layer: the inputs and outputs of both norms, q, k, v, the attention's
    output and its log-sum-exp, the MLP's hidden layer before and after the GELU."""
    rows, places, hidden, heads = 2, 32, SMALL["hidden"], SMALL["heads"]
    tokens, ffn, vocab = rows * places, 4 * hidden, SMALL["vocab"]
    layer = 8 * tokens * hidden + 2 * tokens * ffn + 4 * tokens + rows * heads * places
    end = 2 * tokens * hidden + 2 * tokens + tokens * vocab  # the last norm, and the log-probabilities
    indices = 8 * (2 * tokens + places)  # tokens, targets and positions, as int64
    expected = 4 * (LAYERS * layer + end) + indices + 4  # ... and the weight of the mean
    for zero in (DDP, FSDP):
        assert run(twelve_rows(zero, 2, 3, 2)).memory("backward_start")["activations"] == expected


@pytest.mark.slow
def test_accumulation_under_ddp_holds_gradients_twice(run):
    """While micro-batches add up, `.grad` is not in the buckets yet, which exist all the same."""
    assert run(twelve_rows(DDP, 2, 3, 2)).memory("peak")["gradients"] == 8 * PARAMETERS
    assert run(twelve_rows(DDP, 4, 1, 3)).memory("peak")["gradients"] == 4 * PARAMETERS


@pytest.mark.slow
def test_kept_blocks_fill_the_memory(run):
    """Without resharding the whole model is there when backward begins."""
    done = run(kept_blocks())
    assert done.memory("backward_start")["temporary"] >= 4 * done.summary()["parameters"]


@pytest.mark.slow
def test_peak_is_the_allocators(program):
    """torch's CPU allocator reports each allocation to the profiler: the peak of their sum is ours to 1 %.

    One rank only, for with several gloo's reduce-scatter copies its input in passing, unseen by us.
    """
    training = {"micro_batch": 4, "micro_batches": 2, "sequence": 64}
    done = program("peaks.py", spec_of({"data": 1}, training=training))
    found = done.of_kind("peak")
    assert {event["strategy"] for event in found} == {"ddp", "fsdp"}
    for event in found:
        assert event["ours_bytes"] == pytest.approx(event["allocator_bytes"], rel=0.01)
    check_a_step_that_is_watched_from_the_start(done)


def check_a_step_that_is_watched_from_the_start(done):
    """The only step of a run is its first. DDP's buckets come into being before it, and must not be missed; AdamW's
    state comes into being in it."""
    for event in done.of_kind("first_step"):
        parameters = done.spec.model.hidden * 32 + PARAMETERS  # here there are 64 positions, not 32
        start, end = event["moments"]["forward_start"], event["moments"]["step_end"]
        assert start["gradients"] == (4 * parameters if event["strategy"] == "ddp" else 0)
        assert start["optimizer"] == 0
        assert sum(end[kind] for kind in KINDS[:3]) == 16 * parameters + STEP_COUNTERS_BYTES
    assert len(done.of_kind("first_step")) == 2


@pytest.mark.slow
def test_peak_is_that_of_torchs_own_tracker(program):
    """torch's MemTracker and FSDPMemTracker, with two ranks. FSDP's within 5 %: gloo's threads let go of a finished
    collective's buffer a moment sooner or later, so that no two steps have quite the same peak."""
    training = {"micro_batch": 4, "sequence": 64}
    found = program("peaks.py", spec_of({"data": 2}, training=training)).of_kind("peak")
    tolerance = {"ddp": 0.001, "fsdp": 0.05}
    for event in found:
        assert event["ours_total_bytes"] == pytest.approx(event["torch_bytes"], rel=tolerance[event["strategy"]])
