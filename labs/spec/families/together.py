"""Precision, recomputation and ZeRO beside what cuts a model: the combinations that large jobs are made of, as rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from labs.spec.families.numerics import (
    BF16,
    BF16_AMP,
    BF16_DIGITS,
    FP16_AMP,
    FP16_DIGITS,
    FP16_ZERO_16,
    MEGATRON_18,
    NO_MASTER,
    ZERO_16,
)
from labs.spec.families.row import EXACT, Row
from labs.spec.families.tensor import EXPERTS, OTHER_SHAPE

_FULL: Mapping[str, Any] = {"recompute": "full"}
_SELECTIVE: Mapping[str, Any] = {"recompute": "selective"}
_SP: Mapping[str, Any] = {"sequence_parallel": True}
_FOUR: Mapping[str, Any] = {"micro_batches": 4}
_KEPT: Mapping[str, Any] = {**_FOUR, "reshard_after_forward": False}
_SMALL_BUCKETS: Mapping[str, Any] = {"bucket_bytes": 30_000}
_ALL_THREE: Mapping[str, Any] = {"pipeline": 2, "data": 2, "tensor": 2, **_SP}


def _row(
    identity: str,
    title: str,
    layout: Mapping[str, object],
    training: Mapping[str, object],
    model: Mapping[str, object] | None = None,
) -> Row:
    """A combination on one layout. Its precision says how exact it is."""
    tolerance, why = EXACT, ""
    if training.get("precision") == "bf16":
        tolerance, why = 1e-3, NO_MASTER
    elif training.get("precision") == "bf16-mixed":
        tolerance, why = 5e-4, BF16_DIGITS
    elif training.get("precision") == "fp16-mixed":
        tolerance, why = 1e-4, FP16_DIGITS
    return Row(identity, title, "combined", (layout,), training, model or {}, {}, tolerance, why)


_RECOMPUTED = (
    _row("recompute-tp", "Full recomputation and tensor parallelism", {"tensor": 2}, _FULL),
    _row(
        "recompute-tp-sp",
        "Full recomputation, tensor and sequence parallelism",
        {"tensor": 2, **_SP},
        _FULL,
        OTHER_SHAPE,
    ),
    _row(
        "recompute-selective-tp",
        "Selective recomputation and tensor parallelism",
        {"tensor": 2},
        _SELECTIVE,
        OTHER_SHAPE,
    ),
    _row(
        "recompute-selective-tp-sp",
        "Selective recomputation, tensor and sequence parallelism",
        {"tensor": 2, **_SP},
        _SELECTIVE,
    ),
    _row(
        "recompute-tp-sp-fsdp",
        "Full recomputation, tensor and sequence parallelism and ZeRO-3",
        {"data": 2, "tensor": 2, "zero": 3, **_SP},
        _FULL,
    ),
    _row(
        "recompute-cp",
        "Every second block recomputed, and context parallelism",
        {"context": 2},
        {**_FULL, "recompute_every": 2},
    ),
    _row("recompute-selective-cp", "Selective recomputation and context parallelism", {"context": 2}, _SELECTIVE),
    _row("recompute-pipeline", "Full recomputation in a pipeline", {"pipeline": 2}, {**_FOUR, **_FULL}),
    _row(
        "recompute-interleaved",
        "Every third block recomputed in an interleaved pipeline",
        {"pipeline": 2, "virtual_stages": 2, "schedule": "interleaved"},
        {**_FOUR, **_FULL, "recompute_every": 3},
    ),
    _row("recompute-ep", "Full recomputation and expert parallelism", {"data": 2, "expert": 2}, _FULL, EXPERTS),
    _row(
        "recompute-ep-fsdp",
        "Full recomputation, expert parallelism and ZeRO-3",
        {"data": 4, "expert": 2, "zero": 3},
        _FULL,
        EXPERTS,
    ),
)

_IN_16_BITS = (
    _row("bf16-amp-tp", "bf16 by autocast, and tensor parallelism", {"data": 2, "tensor": 2}, BF16_AMP),
    _row("bf16-amp-tp-sp", "bf16 by autocast, tensor and sequence parallelism", {"tensor": 2, **_SP}, BF16_AMP),
    _row(
        "bf16-amp-tp-sp-fsdp",
        "bf16 by FSDP2's policy, tensor and sequence parallelism",
        {"data": 2, "tensor": 2, "zero": 3, **_SP},
        BF16_AMP,
    ),
    _row("zero-16-tp", "bf16 with a master copy, and tensor parallelism", {"tensor": 2}, ZERO_16, OTHER_SHAPE),
    _row(
        "zero-16-tp-sp-fsdp",
        "bf16 with a master copy, tensor and sequence parallelism and ZeRO-3",
        {"data": 2, "tensor": 2, "zero": 3, **_SP},
        {**ZERO_16, **_FULL},
    ),
    _row("bf16-pure-tp-sp", "bf16 throughout, tensor and sequence parallelism", {"tensor": 2, **_SP}, BF16),
    _row("fp16-tp", "fp16 with a master copy, loss scaled, and tensor parallelism", {"tensor": 2}, FP16_ZERO_16),
    _row("bf16-amp-pipeline", "bf16 by autocast in a pipeline", {"pipeline": 2}, {**_FOUR, **BF16_AMP}),
    _row(
        "zero-16-pipeline",
        "bf16 with a master copy in a pipeline of replicas",
        {"pipeline": 2, "data": 2},
        {**_FOUR, **ZERO_16},
    ),
    _row(
        "bf16-amp-pipeline-fsdp",
        "bf16 by FSDP2's policy in a pipeline",
        {"pipeline": 2, "data": 2, "zero": 3},
        {**_KEPT, **BF16_AMP},
    ),
    _row(
        "fp16-amp-pipeline-tp",
        "fp16 by autocast, loss scaled, pipeline and tensor parallelism",
        {"pipeline": 2, "tensor": 2},
        {**_FOUR, **FP16_AMP},
    ),
    _row(
        "bf16-zbv",
        "bf16 throughout, in ZB-V",
        {"pipeline": 2, "virtual_stages": 2, "schedule": "zbv"},
        {"micro_batches": 8, **BF16},
    ),
    _row("bf16-amp-cp", "bf16 by autocast, and context parallelism", {"context": 2}, BF16_AMP),
    _row(
        "zero-16-cp-fsdp",
        "bf16 with a master copy, context parallelism and ZeRO-3",
        {"data": 2, "context": 2, "zero": 3},
        {**ZERO_16, **_FULL},
    ),
    _row("bf16-amp-ep", "bf16 by autocast, and expert parallelism", {"data": 2, "expert": 2}, BF16_AMP, EXPERTS),
    _row(
        "zero-16-ep-fsdp",
        "bf16 with a master copy, expert parallelism and ZeRO-3",
        {"data": 2, "expert": 2, "zero": 3},
        ZERO_16,
        EXPERTS,
    ),
    _row(
        "bf16-amp-pipeline-tp-sp-fsdp",
        "Pipeline, tensor and sequence parallelism and FSDP2 in bf16, recomputed",
        {**_ALL_THREE, "zero": 3},
        {**_KEPT, **BF16_AMP, **_FULL},
    ),
)

_SHARDED = (
    _row(
        "zero-1-tp-sp",
        "ZeRO-1, tensor and sequence parallelism",
        {"data": 2, "tensor": 2, "zero": 1, **_SP},
        _SMALL_BUCKETS,
    ),
    _row(
        "zero-2-tp-sp",
        "ZeRO-2, tensor and sequence parallelism",
        {"data": 2, "tensor": 2, "zero": 2, **_SP},
        _SMALL_BUCKETS,
    ),
    _row("zero-1-pipeline", "ZeRO-1 in a pipeline", {"pipeline": 2, "data": 2, "zero": 1}, {**_FOUR, **_SMALL_BUCKETS}),
    _row(
        "zero-1-zero-bubble",
        "ZeRO-1 in a zero-bubble pipeline",
        {"pipeline": 2, "data": 2, "zero": 1, "schedule": "zero-bubble"},
        {**_FOUR, **_SMALL_BUCKETS},
    ),
    _row(
        "megatron",
        "Megatron's distributed optimizer: ZeRO-1, pipeline, tensor and sequence parallelism in bf16",
        {**_ALL_THREE, "zero": 1},
        {**_FOUR, **MEGATRON_18, **_FULL, **_SMALL_BUCKETS},
    ),
    _row("tp-offload", "Tensor parallelism, optimizer state in a file", {"tensor": 2}, {"offload": "file"}),
    _row(
        "pipeline-offload", "Pipeline, optimizer state on the host", {"pipeline": 2}, {**_FOUR, "offload": "optimizer"}
    ),
)

ROWS: tuple[Row, ...] = (*_RECOMPUTED, *_IN_16_BITS, *_SHARDED)
