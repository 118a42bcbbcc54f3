"""Data parallelism, sharded or not: what can be asked for, and what it is tested with."""

from __future__ import annotations

from collections.abc import Iterator

from labs.spec.families.row import Row, one_of
from labs.spec.run import RunSpec, RunTraining
from labs.spec.violations import Violation

ROWS = (
    Row("ddp", "DDP", "data", ({"data": 2}, {"data": 4})),
    Row("ddp-accumulation", "DDP with gradient accumulation", "data", ({"data": 2},), {"micro_batches": 3}),
    Row("fsdp", "ZeRO-3 (FSDP2)", "data", ({"data": 2, "zero": 3}, {"data": 4, "zero": 3})),
    Row(
        "fsdp-keep",
        "FSDP2, blocks kept gathered",
        "data",
        ({"data": 2, "zero": 3}, {"data": 4, "zero": 3}),
        {"reshard_after_forward": False},
    ),
    Row(
        "fsdp-accumulation",
        "ZeRO-3 (FSDP2) with gradient accumulation",
        "data",
        ({"data": 2, "zero": 3},),
        {"micro_batches": 3},
    ),
)


def check_data(spec: RunSpec) -> Iterator[Violation]:
    """What data parallelism cannot do."""
    parallel, training = spec.parallel, spec.training
    yield from one_of("parallel.zero", parallel.zero, (0, 3))
    yield from one_of("parallel.shard", parallel.shard, (None, parallel.data))
    yield from one_of("training.offload", training.offload, ("none",))
    yield from one_of("compression.kind", spec.compression.kind, ("none",))
    yield from _check_foreign_settings(spec)


def _check_foreign_settings(spec: RunSpec) -> Iterator[Violation]:
    """Settings of another strategy: accepted at their default, refused rather than ignored otherwise."""
    name, whose = ("bucket_bytes", "DDP") if spec.parallel.zero == 3 else ("reshard_after_forward", "FSDP")
    value, default = getattr(spec.training, name), getattr(RunTraining(), name)
    if value != default:
        yield Violation(f"training.{name}", value, f"Only {whose} has this.", str(default))
