"""Data parallelism, sharded or not: what can be asked for, and what it is tested with."""

from __future__ import annotations

from collections.abc import Iterator

from labs.spec.families.row import Row, one_of
from labs.spec.run import RunSpec, RunTraining
from labs.violations import Violation

_TWO_AND_FOUR = ({"data": 2}, {"data": 4})


def _of_stage(zero: int) -> tuple[dict[str, int], ...]:
    return tuple({**layout, "zero": zero} for layout in _TWO_AND_FOUR)


_HSDP = {"data": 4, "zero": 3, "shard": 2}

ROWS = (
    Row("ddp", "DDP", "data", _TWO_AND_FOUR),
    Row("ddp-accumulation", "DDP with gradient accumulation", "data", ({"data": 2},), {"micro_batches": 3}),
    Row("ddp-buckets", "DDP in small buckets", "data", _TWO_AND_FOUR, {"bucket_bytes": 20_000}),
    Row("ddp-tiny-buckets", "DDP, a bucket for every large tensor", "data", ({"data": 2},), {"bucket_bytes": 1024}),
    Row("zero-1", "ZeRO-1", "data", _of_stage(1), {"bucket_bytes": 50_000}),
    Row(
        "zero-1-accumulation",
        "ZeRO-1 with gradient accumulation",
        "data",
        ({"data": 2, "zero": 1},),
        {"micro_batches": 3},
    ),
    Row("zero-2", "ZeRO-2", "data", _of_stage(2), {"bucket_bytes": 50_000}),
    Row(
        "zero-2-accumulation",
        "ZeRO-2 with gradient accumulation",
        "data",
        ({"data": 2, "zero": 2},),
        {"micro_batches": 3},
    ),
    Row(
        "zero-redundancy-optimizer",
        "ZeRO-1 (ZeroRedundancyOptimizer)",
        "data",
        _of_stage(1),
        {"zero_implementation": "ZeroRedundancyOptimizer"},
    ),
    Row("fsdp", "ZeRO-3 (FSDP2)", "data", _of_stage(3)),
    Row("fsdp-keep", "FSDP2, blocks kept gathered", "data", _of_stage(3), {"reshard_after_forward": False}),
    Row(
        "fsdp-accumulation",
        "ZeRO-3 (FSDP2) with gradient accumulation",
        "data",
        ({"data": 2, "zero": 3},),
        {"micro_batches": 3},
    ),
    Row("hsdp", "HSDP: sharded in groups, replicated over them", "data", (_HSDP,)),
    Row(
        "hsdp-keep",
        "HSDP, blocks kept gathered",
        "data",
        (_HSDP,),
        {"reshard_after_forward": False, "micro_batches": 4},
    ),
    Row(
        "zero-1-offload",
        "ZeRO-1, optimizer state on the host",
        "data",
        ({"data": 2, "zero": 1},),
        {"offload": "optimizer"},
    ),
    Row("ddp-offload-file", "DDP, optimizer state in a file", "data", ({"data": 2},), {"offload": "file"}),
    Row(
        "zero-2-offload-file",
        "ZeRO-2, optimizer state in a file",
        "data",
        ({"data": 2, "zero": 2},),
        {"offload": "file"},
    ),
    Row(
        "fsdp-offload", "ZeRO-3 (FSDP2), everything on the host", "data", ({"data": 2, "zero": 3},), {"offload": "all"}
    ),
    Row(
        "fsdp-offload-file",
        "ZeRO-3 (FSDP2), optimizer state in a file",
        "data",
        ({"data": 2, "zero": 3},),
        {"offload": "file"},
    ),
)


def check_data(spec: RunSpec) -> Iterator[Violation]:
    """What data parallelism cannot do."""
    yield from _check_stage(spec)
    yield from _check_shard(spec)
    yield from _check_offload(spec)
    yield from _check_foreign_settings(spec)


def deals_out_tensors(spec: RunSpec) -> bool:
    """Whether ZeRO-1 is PyTorch's, which gives every rank whole tensors."""
    return spec.parallel.zero == 1 and spec.training.zero_implementation == "ZeroRedundancyOptimizer"


def _check_stage(spec: RunSpec) -> Iterator[Violation]:
    parallel = spec.parallel
    if parallel.zero in (1, 2) and parallel.expert > 1:
        message = f"ZeRO-{parallel.zero} lays out flat what all data ranks hold, and experts are not."
        yield Violation("parallel.zero", parallel.zero, message, "0, 3", ("parallel.expert",))
    if parallel.zero == 2 and parallel.pipeline > 1:
        message = "ZeRO-2 sends the gradients of every micro-batch by itself, and a pipeline's are interleaved."
        yield Violation("parallel.zero", 2, message, "0, 1, 3", ("parallel.pipeline",))
    wide = [f"parallel.{axis}" for axis in ("tensor", "pipeline") if getattr(parallel, axis) > 1]
    if deals_out_tensors(spec) and wide:
        message = "ZeroRedundancyOptimizer deals out the tensors of a whole model."
        field = "training.zero_implementation"
        yield Violation(field, spec.training.zero_implementation, message, "flat-buffer", tuple(wide))


def _check_shard(spec: RunSpec) -> Iterator[Violation]:
    parallel = spec.parallel
    if parallel.shard in (None, parallel.data):
        return
    if parallel.zero != 3:
        message = "Only ZeRO-3 can shard over some of the ranks and replicate over the others."
        yield Violation("parallel.shard", parallel.shard, message, f"None, {parallel.data}", ("parallel.zero",))
        return
    fitting = tuple(size for size in range(2, parallel.data + 1) if parallel.data % size == 0)
    because = f"Groups of {parallel.shard} do not shard {parallel.data} data ranks evenly."
    yield from one_of("parallel.shard", parallel.shard, (None, *fitting), because)
    if parallel.context > 1:
        yield Violation("parallel.context", parallel.context, "HSDP has no context parallelism beside it.", "1")


def _check_offload(spec: RunSpec) -> Iterator[Violation]:
    offload, zero = spec.training.offload, spec.parallel.zero
    if offload == "all" and zero != 3:
        message = "Weights can live on the host only where they are gathered for use: under ZeRO-3."
        yield Violation("training.offload", offload, message, "none, optimizer, file", ("parallel.zero",))
    elif offload != "none" and deals_out_tensors(spec):
        message = "ZeroRedundancyOptimizer keeps its state beside the weights."
        yield Violation("training.offload", offload, message, "none", ("training.zero_implementation",))


def _check_foreign_settings(spec: RunSpec) -> Iterator[Violation]:
    """Settings of another strategy: accepted at their default, refused rather than ignored otherwise."""
    foreign = (
        [("bucket_bytes", "DDP or ZeRO-1 and 2")] if spec.parallel.zero == 3 else [("reshard_after_forward", "FSDP")]
    )
    if spec.parallel.zero != 1:
        foreign.append(("zero_implementation", "ZeRO-1"))
    for name, whose in foreign:
        value, default = getattr(spec.training, name), getattr(RunTraining(), name)
        if value != default:
            yield Violation(f"training.{name}", value, f"Only {whose} has this.", str(default))
