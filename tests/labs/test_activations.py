"""What is kept for backward, against theory's own profile of the lab, under every way of sharding and recomputing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from app.theory.lab_runs import activation_bytes
from app.theory.planner import MemoryBytes, estimate, parse_estimate_request
from labs.command import local_torchrun
from labs.spec import LAB_MODELS, parse_run_spec
from tests.labs.ranks import PROGRAMS, parse_events, torchrun

pytestmark = pytest.mark.slow

MODEL = LAB_MODELS["gpt-small"]
BATCH = {"sequence": 128, "micro_batch": 2}
GLOBAL_BATCH = 4  # of two data ranks
ZERO_16 = {"precision": "bf16-mixed", "state_layout": "zero-16"}
PARAMETERS_BYTES = 12_994_560  # in fp32: 4 × 786,432 + 18 × 256 + (256 + 128) × 256 parameters

CASES: dict[str, tuple[int, dict[str, Any]]] = {
    "ddp": (0, {}),
    "zero-1": (1, {}),
    "zero-2": (2, {"bucket_bytes": 3_000_000}),
    "fsdp": (3, {}),
    "ddp-full": (0, {"recompute": "full"}),
    "fsdp-full": (3, {"recompute": "full"}),
    "ddp-selective": (0, {"recompute": "selective"}),
    "zero-2-in-bf16": (2, ZERO_16),
    "ddp-written-out": (0, {"attention": "full"}),
    "ddp-full-written-out": (0, {"attention": "full", "recompute": "full"}),
    "fsdp-full-in-bf16": (3, {**ZERO_16, "recompute": "full"}),
}

TENSOR: dict[str, tuple[bool, dict[str, Any]]] = {
    "tensor": (False, {}),
    "tensor-full": (False, {"recompute": "full"}),
    "sequence": (True, {}),
    "sequence-full": (True, {"recompute": "full"}),
}


def tensor_spec(name: str) -> dict[str, Any]:
    in_sequence, training = TENSOR[name]
    parallel = {"tensor": 2, "sequence_parallel": in_sequence}
    return {"model": "gpt-small", "training": {**BATCH, **training}, "parallel": parallel}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, dict[str, int]]]:
    """The moments of rank 0 by case, from one start of two ranks."""
    folder = tmp_path_factory.mktemp("activations")
    specs = {
        name: {"model": "gpt-small", "training": {**BATCH, **training}, "parallel": {"data": 2, "zero": zero}}
        for name, (zero, training) in CASES.items()
    } | {name: tensor_spec(name) for name in TENSOR}
    (folder / "specs.json").write_text(json.dumps(specs))
    command = [*local_torchrun(2), str(PROGRAMS / "activations.py")]
    ended = torchrun([*command, "--specs", str(folder / "specs.json"), "--events", str(folder)], timeout=200)
    assert ended.returncode == 0, ended.stderr
    return {event["name"]: event["moments"] for event in parse_events((folder / "events-0.jsonl").read_text())}


def theory_of(name: str) -> MemoryBytes:
    zero, training = CASES[name]
    known = {key: value for key, value in training.items() if key != "bucket_bytes"}
    request = {
        "model": MODEL.model_dump(),
        "training": {"precision": "fp32", "state_layout": "fp32", **BATCH, **known, "global_batch": GLOBAL_BATCH},
        "parallel": {"data": 2, "zero": zero},
        "profile": "rankzero-labs",
    }
    return estimate(parse_estimate_request(request)).memory.per_rank_bytes


@pytest.mark.parametrize("name", CASES)
def test_activations_at_their_largest_are_theorys(found, name):
    """Within two per cent: token ids and the loss's own few numbers are not in the formula."""
    assert found[name]["activation_peak"]["activations"] == pytest.approx(theory_of(name).activations, rel=0.02)


@pytest.mark.parametrize("name", TENSOR)
def test_what_tensor_ranks_keep_is_theorys(found, name):
    """What the lab's pages show beside a run that cuts layers, whole or along the sequence between them."""
    theory = activation_bytes(parse_run_spec(tensor_spec(name)))
    assert found[name]["activation_peak"]["activations"] == pytest.approx(theory, rel=0.02)


@pytest.mark.parametrize(("zero", "training"), CASES.values(), ids=CASES)
def test_a_run_is_shown_the_planners_activations(zero, training):
    spec = {"model": "gpt-small", "training": {**BATCH, **training}, "parallel": {"data": 2, "zero": zero}}
    name = next(name for name, case in CASES.items() if case == (zero, training))
    assert activation_bytes(parse_run_spec(spec)) == theory_of(name).activations


def test_nothing_is_said_of_activations_that_were_not_held_against_runs():
    for training, parallel in (
        ({}, {"pipeline": 2}),
        ({}, {"context": 2}),
        ({"attention": "full", **ZERO_16}, {}),
        ({"attention": "full", "recompute": "selective"}, {}),
        ({"recompute": "full", "recompute_every": 2}, {}),
    ):
        spec = {"model": "gpt-small", "training": {**BATCH, **training}, "parallel": parallel}
        assert activation_bytes(parse_run_spec(spec)) is None


@pytest.mark.parametrize("name", CASES)
def test_the_model_state_is_theorys(found, name):
    theory, held = theory_of(name), found[name]["step_end"]
    for component in ("parameters", "gradients", "optimizer"):
        assert held[component] == pytest.approx(getattr(theory, component), rel=0.01), component


def test_recomputed_activations_are_activations(found):
    """In backward one block's are there besides the blocks' inputs, which full recomputation keeps; what the loss kept
    at the end has been used by then."""
    kept, peak = (found["ddp-full"][at]["activations"] for at in ("backward_start", "activation_peak"))
    everything = found["ddp"]["activation_peak"]["activations"]
    inputs = 4 * BATCH["micro_batch"] * BATCH["sequence"] * MODEL.hidden  # bytes of a block's input
    # ... and the loss the last norm's input, its output, and the log-probabilities, all of one size here.
    assert kept == pytest.approx(inputs * (MODEL.layers + 3), rel=0.01)
    assert peak - (kept - 3 * inputs) == pytest.approx((everything - kept) / MODEL.layers, rel=0.01)


def test_zero_2_has_a_bucket_of_gradients_at_a_time_and_zero_1_all_of_them(found):
    one, two = found["zero-1"], found["zero-2"]
    assert one["forward_start"]["gradients"] == PARAMETERS_BYTES  # the flat buffers are always there
    assert two["forward_start"]["gradients"] == 0
    assert two["step_end"]["gradients"] == PARAMETERS_BYTES // 2
    # Buckets under way and filling are temporary: less than all gradients, which DDP has beside its activations.
    assert two["peak"]["total"] < one["peak"]["total"] - PARAMETERS_BYTES // 2


def test_gathered_parameters_are_temporary(found):
    """When backward begins FSDP's root unit is gathered: everything outside the blocks."""
    outside = 4 * ((256 + 128) * MODEL.hidden + 2 * MODEL.hidden)
    assert outside <= found["fsdp"]["backward_start"]["temporary"] < outside + 50_000
    assert found["fsdp"]["backward_start"]["parameters"] == PARAMETERS_BYTES // 2
