"""Data parallelism, precision, recomputation, compression and offload: which of them go together in a run."""

from __future__ import annotations

from typing import Any

import pytest

from labs.spec import SUPPORT, SpecError, Violation, parse_run_spec

GPT = {"layers": 4, "hidden": 64, "heads": 4, "vocab": 256}
BF16_AMP = {"precision": "bf16-mixed", "state_layout": "torch-amp"}
ZERO_16 = {"precision": "bf16-mixed", "state_layout": "zero-16"}


def spec(training: Any = None, parallel: Any = None, compression: Any = None) -> dict[str, Any]:
    return {
        "model": GPT,
        "training": training or {},
        "parallel": {"data": 4, **(parallel or {})},
        "compression": compression or {},
    }


def violations(data: Any) -> dict[str, Violation]:
    with pytest.raises(SpecError) as raised:
        parse_run_spec(data)
    return {violation.field: violation for violation in raised.value.violations}


@pytest.mark.parametrize("row", SUPPORT, ids=lambda row: row.id)
def test_every_row_of_the_matrix_can_be_asked_for(row: Any) -> None:
    for layout in row.layouts:
        training = {"micro_batch": 1, **row.training}
        model = {"layers": 8, "hidden": 32, "heads": 8, "vocab": 256, **row.model}
        data = {"model": model, "training": training, "parallel": layout, "compression": row.compression}
        assert parse_run_spec(data).parallel.world_size >= 2


def test_a_row_that_is_not_exact_says_why() -> None:
    assert all(row.is_exact != bool(row.why) for row in SUPPORT)


@pytest.mark.parametrize(
    ("precision", "layout", "accepted"),
    [
        ("fp32", "zero-16", "fp32"),
        ("bf16-mixed", "fp32", "torch-amp, zero-16, megatron-18"),
        ("bf16-mixed", "mixed-20", "torch-amp, zero-16, megatron-18"),
        ("fp16-mixed", "bf16", "torch-amp, zero-16"),
        ("bf16", "torch-amp", "bf16"),
    ],
)
def test_a_state_layout_that_would_not_be_the_real_one_is_refused(precision: str, layout: str, accepted: str) -> None:
    found = violations(spec({"precision": precision, "state_layout": layout}))
    assert found["training.state_layout"].accepted == accepted


@pytest.mark.parametrize(
    ("data", "field", "accepted"),
    [
        # sharding
        (spec(parallel={"zero": 3, "shard": 3}), "parallel.shard", "None, 2, 4"),
        (spec(parallel={"zero": 3, "shard": 1}), "parallel.shard", "None, 2, 4"),
        (spec(parallel={"zero": 1, "shard": 2}), "parallel.shard", "None, 4"),
        # what only another strategy has
        (spec({"bucket_bytes": 2048}, {"zero": 3}), "training.bucket_bytes", str(25 * 2**20)),
        (spec({"reshard_after_forward": False}, {"zero": 2}), "training.reshard_after_forward", "True"),
        (
            spec({"zero_implementation": "ZeroRedundancyOptimizer"}, {"zero": 2}),
            "training.zero_implementation",
            "flat-buffer",
        ),
        # offload
        (spec({"offload": "all"}, {"zero": 2}), "training.offload", "none, optimizer, file"),
        (
            spec({"offload": "file", "zero_implementation": "ZeroRedundancyOptimizer"}, {"zero": 1}),
            "training.offload",
            "none",
        ),
        # precision
        (spec({**ZERO_16, "state_layout": "megatron-18"}), "training.state_layout", "torch-amp, zero-16"),
        (
            spec({**ZERO_16, "zero_implementation": "ZeroRedundancyOptimizer"}, {"zero": 1}),
            "training.state_layout",
            "torch-amp",
        ),
        (spec({**BF16_AMP, "loss_scaling": True}), "training.loss_scaling", "False"),
        # optimizers
        (spec({"optimizer": "lars"}, {"zero": 2}), "training.optimizer", "adamw, sgd"),
        (spec({"optimizer": "lamb"}, {"zero": 3}), "training.optimizer", "adamw, sgd"),
        # recomputation
        (spec({"recompute_every": 2}), "training.recompute_every", "1"),
        (spec({"recompute": "full", "recompute_every": 5}), "training.recompute_every", "1 to 4"),
        # compression
        (spec(parallel={"zero": 1}, compression={"kind": "one-bit"}), "compression.kind", "none"),
        (spec(ZERO_16, compression={"kind": "bf16"}), "compression.kind", "none"),
        (spec(compression={"kind": "one-bit", "density": 0.5}), "compression.density", "0.01"),
        (spec(compression={"kind": "top-k", "rank": 2}), "compression.rank", "4"),
        (spec(compression={"error_feedback": False}), "compression.error_feedback", "True"),
    ],
)
def test_what_does_not_go_together_is_refused_with_what_would(data: Any, field: str, accepted: str) -> None:
    assert violations(data)[field].accepted == accepted


@pytest.mark.parametrize("axis", ["tensor", "pipeline", "context", "expert"])
def test_compression_was_built_for_data_parallelism_and_says_so_beside_another(axis: str) -> None:
    given = {**spec(compression={"kind": "powersgd"}), "parallel": {"data": 2, axis: 2}}
    assert {"compression.kind", f"parallel.{axis}"} & set(violations(given))


BUBBLES = {"pipeline": 2, "schedule": "zero-bubble"}
FOUR = {"micro_batches": 4}
DEALT_OUT = {"zero_implementation": "ZeroRedundancyOptimizer"}


@pytest.mark.parametrize(
    ("parallel", "training", "field", "accepted"),
    [
        ({"data": 2, **BUBBLES}, {**FOUR, "recompute": "full"}, "training.recompute", "none"),
        ({"data": 2, "pipeline": 2, "zero": 2}, FOUR, "parallel.zero", "0, 1, 3"),
        ({"data": 2, "expert": 2, "zero": 1}, {}, "parallel.zero", "0, 3"),
        ({"data": 2, "tensor": 2, "zero": 1}, DEALT_OUT, "training.zero_implementation", "flat-buffer"),
        ({"data": 2, "expert": 2, "zero": 3}, BF16_AMP, "training.state_layout", "zero-16"),
        (
            {"data": 2, "tensor": 2},
            {**ZERO_16, "state_layout": "megatron-18"},
            "training.state_layout",
            "torch-amp, zero-16",
        ),
    ],
)
def test_what_a_cut_model_cannot_have_beside_it_is_refused(
    parallel: dict[str, Any], training: dict[str, Any], field: str, accepted: str
) -> None:
    given = {"model": {**GPT, "experts": 4 if "expert" in parallel else 1}, "training": training, "parallel": parallel}
    assert violations(given)[field].accepted == accepted


@pytest.mark.parametrize(
    "data",
    [
        spec(parallel={"zero": 3, "shard": 4}),
        spec({"offload": "all"}, {"zero": 3}),
        spec({"optimizer": "lamb", "zero_implementation": "ZeroRedundancyOptimizer"}, {"zero": 1}),
        spec({"recompute": "selective", "recompute_every": 4}),
        spec({"precision": "fp16-mixed", "state_layout": "torch-amp"}),  # unscaled, to see gradients vanish
        spec({**ZERO_16, "offload": "file"}, {"zero": 2}),
        spec(BF16_AMP, compression={"kind": "top-k", "density": 1.0}),
        spec({**ZERO_16, **FOUR, "recompute": "full"}, {"data": 2, "tensor": 2, "pipeline": 2, "zero": 1}),
        spec({**ZERO_16, "state_layout": "megatron-18"}, {"data": 2, "tensor": 2, "zero": 2}),
    ],
)
def test_what_goes_together_is_taken(data: Any) -> None:
    assert parse_run_spec(data)
