"""Pipeline parallelism: what can be asked for, and what it is tested with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from labs.spec.families.row import Row
from labs.spec.run import RunSpec
from labs.spec.schedules import V_SHAPED, Schedule, ScheduleFields, schedule_violations, unscheduled_violations
from labs.spec.shapes import nearest_divisors
from labs.violations import Violation

_MOST_GATHERED_STAGES = 3
_FIELDS = ScheduleFields("parallel.schedule", "parallel.pipeline", "parallel.virtual_stages", "training.micro_batches")


def _row(schedule: Schedule, title: str, chunks: int = 1, micro_batches: int = 4) -> Row:
    layouts = tuple({"pipeline": stages, "virtual_stages": chunks, "schedule": schedule} for stages in (2, 4))
    return Row(schedule, title, "pipeline", layouts, {"micro_batches": micro_batches})


def _both(identity: str, title: str, layout: Mapping[str, object], reshard: bool = True) -> Row:
    training = {"micro_batches": 4} | ({} if reshard else {"reshard_after_forward": False})
    return Row(identity, title, "combined", (layout,), training)


_UNTIED = {"tied_embeddings": False}

ROWS: tuple[Row, ...] = (
    _row("gpipe", "Pipeline, GPipe"),
    _row("1f1b", "Pipeline, 1F1B"),
    _row("interleaved", "Pipeline, interleaved 1F1B", 2),
    _row("looped-bfs", "Pipeline, looped BFS", 2),
    _row("zero-bubble", "Pipeline, zero bubble", 2),
    _row("zbv", "Pipeline, ZB-V", 2, 8),
    _row("dualpipev", "Pipeline, DualPipe-V", 2, 8),
    Row("1f1b-untied", "Pipeline, untied head", "pipeline", ({"pipeline": 2},), {"micro_batches": 4}, _UNTIED),
    _both("pipeline-ddp", "Pipeline and DDP", {"pipeline": 2, "data": 2}),
    _both("pipeline-fsdp", "Pipeline and FSDP2", {"pipeline": 2, "data": 2, "zero": 3}, reshard=False),
    _both("pipeline-4-ddp", "Pipeline of four and DDP", {"pipeline": 4, "data": 2}),
    _both(
        "interleaved-fsdp",
        "Interleaved pipeline and FSDP2",
        {"pipeline": 2, "data": 2, "zero": 3, "virtual_stages": 2, "schedule": "interleaved"},
        reshard=False,
    ),
)


def check_pipeline(spec: RunSpec) -> Iterator[Violation]:
    """What a pipeline cannot do."""
    parallel = spec.parallel
    if parallel.pipeline == 1:
        yield from unscheduled_violations(parallel.schedule, parallel.virtual_stages, _FIELDS)
        return
    yield from schedule_violations(
        parallel.schedule, parallel.pipeline, spec.training.micro_batches, parallel.virtual_stages, _FIELDS
    )
    yield from _check_stages(spec)
    yield from _check_ends(spec)
    yield from _check_sharding(spec)


def _check_sharding(spec: RunSpec) -> Iterator[Violation]:
    """torch's schedules keep what they gathered from a stage's first pass to its last."""
    parallel = spec.parallel
    if parallel.zero != 3 or parallel.data * parallel.context == 1:
        return
    involves = ("parallel.zero", "parallel.pipeline")
    if spec.training.reshard_after_forward:
        message = "In a pipeline a stage's parameters stay gathered through all micro-batches of a step."
        yield Violation("training.reshard_after_forward", True, message, "false", involves)
    if parallel.virtual_stages > _MOST_GATHERED_STAGES:
        message = "torch's schedules keep no more stages gathered at once."
        accepted = f"at most {_MOST_GATHERED_STAGES} with parallel.zero 3"
        yield Violation("parallel.virtual_stages", parallel.virtual_stages, message, accepted, involves)


def _check_stages(spec: RunSpec) -> Iterator[Violation]:
    """Stages are equal: a run shows what scheduling costs, not what an uneven cut costs."""
    parallel, layers = spec.parallel, spec.model.layers
    stages = parallel.pipeline * parallel.virtual_stages
    if layers % stages:
        involves = ("parallel.virtual_stages", "model.layers")
        message = f"{layers} layers do not make {stages} equal stages (pipeline × virtual_stages)."
        fitting = nearest_divisors(layers // parallel.virtual_stages or 1, parallel.pipeline)
        accepted = f"pipeline {fitting}" if layers % parallel.virtual_stages == 0 else f"layers: a multiple of {stages}"
        yield Violation("parallel.pipeline", parallel.pipeline, message, accepted, involves)


def _check_ends(spec: RunSpec) -> Iterator[Violation]:
    """In a V the tied table is one parameter of two stages, which neither DDP nor FSDP2 can replicate or shard."""
    parallel = spec.parallel
    if parallel.schedule in V_SHAPED and spec.model.tied_embeddings and parallel.data * parallel.context > 1:
        message = f"With {parallel.schedule} both ends are on one rank, and a tied table would be in two replicas."
        involves = ("parallel.schedule", "parallel.data", "parallel.context")
        yield Violation("model.tied_embeddings", True, message, "false, or parallel.data 1", involves)
