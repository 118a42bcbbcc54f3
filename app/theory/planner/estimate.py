"""What a training plan needs: an EstimateRequest in, an Estimate out.

A model of which only the size is known gets model state alone; what is not estimated is null and said so in
`assumptions`: a missing term must never read as zero.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import replace
from typing import get_args

from app.theory.hardware import GPUS
from app.theory.planner.engine.communication import Traffic, step_traffic
from app.theory.planner.engine.exposure import StageSeconds
from app.theory.planner.engine.flops import hardware_flops, model_flops, stage_flops
from app.theory.planner.engine.memory import StageMemory, stage_memories, state_bytes
from app.theory.planner.engine.plan import Plan
from app.theory.planner.engine.resolve import plan_of, profile_of
from app.theory.planner.engine.timing import StepSeconds, idle_seconds, step_seconds
from app.theory.planner.evidence import spread_of
from app.theory.planner.fields import MfuDefinition
from app.theory.planner.intervals import features_of
from app.theory.planner.remarks import assumptions, state_assumptions, warnings
from app.theory.planner.requests import EstimateRequest, ParameterCount, parse_estimate_request
from app.theory.planner.results import (
    CollectiveEstimate,
    Estimate,
    ForwardFlops,
    Interval,
    MemoryBytes,
    MemoryEstimate,
    MfuByDefinition,
    Outcome,
    Parameters,
    PipelineEstimate,
    SoftwareDefault,
    StageMemoryEstimate,
    TimeEstimate,
)
from app.theory.planner.software import layout_of
from app.theory.state import zero_state_bytes
from app.theory.transformer import active_parameter_count, parameter_count

__all__ = ["estimate", "fewest_ranks", "outcome", "parse_estimate_request"]

MOST_RANKS = 10**9  # what "no number of ranks" means


def estimate(request: EstimateRequest) -> Estimate:
    """What a plan needs. A plan without a GPU is not timed, and a bare number of parameters gets model state alone."""
    if isinstance(request.model, ParameterCount):
        return _state_only(request, request.model.parameters)
    plan, capacity = plan_of(request), _capacity(request)
    memories = stage_memories(plan)
    worst = max(memories, key=lambda memory: memory.total)
    timed = step_seconds(plan, memories) if plan.device is not None else None
    model, sequence = plan.model, plan.training.sequence
    bubble = timed.bubble_fraction if timed else _bubble(plan)
    model_rate, hardware_rate = _flops_per_second_per_gpu(request, plan, timed)
    peak = plan.device.peak_flops_per_second if plan.device else None
    return Estimate(
        parameters=Parameters(
            total=parameter_count(model, sequence),
            per_rank=max(memory.held.total for memory in memories),
            active=active_parameter_count(model, sequence),
        ),
        memory=MemoryEstimate(
            per_rank_bytes=_components(worst),
            by_stage=tuple(_stage(plan, memory) for memory in memories),
            host_bytes=worst.host,
            capacity_bytes=capacity,
            fits=_fits(worst.total, capacity),
            software_default=_software_default(plan, worst),
        ),
        communication=_communication(plan, timed, worst),
        pipeline=PipelineEstimate(bubble, tuple(memory.in_flight for memory in memories), plan.micro_batches),
        time=_time(plan, timed),
        mfu=model_rate / peak if model_rate is not None and peak else None,
        mfu_by_definition=_mfus(plan, timed),
        hfu=hardware_rate / peak if hardware_rate is not None and peak else None,
        interval=_interval(request, plan, timed, worst),
        model_flops_per_second_per_gpu=model_rate,
        hardware_flops_per_second_per_gpu=hardware_rate,
        assumptions=tuple(assumptions(request, plan)),
        warnings=tuple(warnings(request, plan, worst, capacity, bubble)),
    )


def outcome(request: EstimateRequest) -> Outcome:
    """What `estimate` says of a plan's step and memory, for many plans beside each other: half the work."""
    capacity = _capacity(request)
    if isinstance(request.model, ParameterCount):
        held = _state_bytes(request, request.model.parameters)
        return Outcome(None, held, _fits(held.total, capacity))
    plan = plan_of(request)
    memories = stage_memories(plan)
    worst = max(memories, key=lambda memory: memory.total)
    seconds = step_seconds(plan, memories).step if plan.device is not None else None
    return Outcome(seconds, _components(worst), _fits(worst.total, capacity))


def _fits(held_bytes: float, capacity: float | None) -> bool | None:
    return None if capacity is None else held_bytes <= capacity


def _software_default(plan: Plan, worst: StageMemory) -> SoftwareDefault | None:
    own = layout_of(plan.profile_name, plan.training.precision)
    if own == plan.training.state_layout:
        return None
    by_itself = replace(plan, training=plan.training.model_copy(update={"state_layout": own}))
    return SoftwareDefault(own, max(0.0, state_bytes(by_itself, worst.held) - state_bytes(plan, worst.held)))


def _interval(request: EstimateRequest, plan: Plan, timed: StepSeconds | None, worst: StageMemory) -> Interval:
    gpu = request.cluster.gpu if request.cluster else None
    if gpu is None or timed is None:
        return Interval()
    features = features_of(plan, gpu, parameter_count(plan.model, plan.training.sequence))
    time, memory = spread_of(features, True), spread_of(features, False)
    return Interval(
        time.around(timed.step) if time else None,
        memory.around(worst.total) if memory else None,
        time.rows if time else 0,
    )


def _components(memory: StageMemory) -> MemoryBytes:
    return MemoryBytes(
        memory.parameters, memory.gradients, memory.optimizer, memory.activations, memory.temporary, memory.total
    )


def _stage(plan: Plan, memory: StageMemory) -> StageMemoryEstimate:
    flops = stage_flops(plan, memory.stage)
    return StageMemoryEstimate(
        stage=memory.stage.index,
        layers=memory.stage.layers,
        parameters=memory.held.total,
        in_flight_micro_batches=memory.in_flight,
        forward_flops_per_token=ForwardFlops(flops.matrices, flops.attention, flops.head),
        bytes=_components(memory),
    )


def _communication(plan: Plan, timed: StepSeconds | None, worst: StageMemory) -> tuple[CollectiveEstimate, ...]:
    """The slowest stage's collectives; without a GPU the fullest stage's, which take no known time."""
    rows: list[tuple[Traffic, float]] = (
        list(timed.traffic) if timed else [(row, 0.0) for row in step_traffic(plan, worst.stage)]
    )
    return tuple(
        CollectiveEstimate(
            name=row.name,
            operation=row.operation,
            group=row.group,
            group_size=row.ranks.size,
            count_per_step=row.count,
            payload_bytes_per_rank_per_step=row.payload_bytes,
            wire_bytes_per_rank_per_step=row.wire_bytes,
            link=row.ranks.link,
            seconds=row.seconds if timed else None,
            exposed_seconds=exposed if timed else None,
            ranks_per_node=min(row.ranks.size, row.ranks.per_node),
            cards_per_node=_cards_per_node(row),
        )
        for row, exposed in rows
    )


def _cards_per_node(row: Traffic) -> int:
    """Network cards that a node's ranks of the group send through: one for each, but for a ring of one rail."""
    if row.ranks.nodes == 1:
        return 0
    one_rail = row.operation in ("all_reduce", "all_gather", "reduce_scatter") and not row.ranks.all_rails
    return 1 if one_rail else row.ranks.per_node


def _bubble(plan: Plan) -> float:
    """Idle over total of equal stages whose backward is two forwards (F22 to F24), where nothing can be timed."""
    equal = StageSeconds(forward=1.0, backward=2.0, recompute=0.0, weight_gradients=1.0, attention=0.0, exposed=0.0)
    fill = idle_seconds(plan, [equal] * plan.parallel.pipeline, 0)
    return fill / (plan.micro_batches * equal.busy + fill)


def _tokens(plan: Plan) -> int:
    """Tokens of a step, over all data ranks."""
    return plan.micro_batches * plan.training.micro_batch * plan.parallel.data * plan.training.sequence


def _flops_per_second_per_gpu(
    request: EstimateRequest, plan: Plan, timed: StepSeconds | None
) -> tuple[float | None, float | None]:
    """The model's FLOPs as the request counts them, and those the hardware does, of which recomputation is a part."""
    if timed is None:
        return None, None
    rate = _tokens(plan) / timed.step / plan.parallel.world_size
    return model_flops(plan, request.mfu) * rate, hardware_flops(plan) * rate


def _mfus(plan: Plan, timed: StepSeconds | None) -> MfuByDefinition:
    if timed is None or plan.device is None:
        return MfuByDefinition()
    share = _tokens(plan) / timed.step / plan.parallel.world_size / plan.device.peak_flops_per_second
    return MfuByDefinition(*(model_flops(plan, each) * share for each in get_args(MfuDefinition)))


def _time(plan: Plan, timed: StepSeconds | None) -> TimeEstimate:
    if timed is None:
        return TimeEstimate()
    return TimeEstimate(
        step_seconds=timed.step,
        compute_seconds=timed.compute,
        recompute_seconds=timed.recompute,
        bubble_seconds=timed.bubble,
        exposed_communication_seconds=timed.exposed,
        optimizer_seconds=timed.optimizer,
        tokens_per_second=_tokens(plan) / timed.step,
    )


def _state_only(request: EstimateRequest, total: float) -> Estimate:
    """A model that is only a number of parameters."""
    parallel, capacity = request.parallel, _capacity(request)
    held = _state_bytes(request, total)
    return Estimate(
        parameters=Parameters(total, total / (parallel.tensor * parallel.pipeline), active=total),
        memory=MemoryEstimate(
            per_rank_bytes=held,
            by_stage=(),
            host_bytes=None,
            capacity_bytes=capacity,
            fits=_fits(held.total, capacity),
        ),
        communication=(),
        pipeline=PipelineEstimate(None, (), None),
        time=TimeEstimate(),
        mfu=None,
        mfu_by_definition=MfuByDefinition(),
        hfu=None,
        interval=Interval(),
        model_flops_per_second_per_gpu=None,
        hardware_flops_per_second_per_gpu=None,
        assumptions=tuple(state_assumptions(request, _state_shards(request), profile_of(request))),
        warnings=tuple(_state_warnings(request, held.total, capacity)),
    )


def _state_shards(request: EstimateRequest) -> int:
    parallel = request.parallel
    return parallel.shard or parallel.data * parallel.context


def _state_bytes(request: EstimateRequest, total: float) -> MemoryBytes:
    """Model state of `total` parameters, split evenly (F02, F27)."""
    parallel, layout = request.parallel, request.training.state_layout
    per_rank, shards = total / (parallel.tensor * parallel.pipeline), _state_shards(request)
    parameters, gradients, optimizer = (
        zero_state_bytes(per_rank, shards, parallel.zero, layout, part)
        for part in ("parameters", "gradients", "optimizer")
    )
    return MemoryBytes(parameters, gradients, optimizer, None, None, total=parameters + gradients + optimizer)


def _state_warnings(request: EstimateRequest, state: float, capacity: float | None) -> list[str]:
    found = []
    if request.training.offload != "none":
        found.append("Offload is not followed for a bare number of parameters: all state is counted on the GPU.")
    if request.training.optimizer != "adamw":
        found.append(
            f"The optimizer's bytes are Adam's in layout {request.training.state_layout}, not those of "
            f"{request.training.optimizer}: give the model's shape for those."
        )
    if capacity is not None and state > capacity:
        found.append("The model state alone does not fit.")
    elif capacity is not None and state > 0.85 * capacity:
        found.append("The model state alone takes over 85 % of the memory; activations and buffers come on top.")
    return found


def _capacity(request: EstimateRequest) -> float | None:
    cluster = request.cluster
    if cluster is None:
        return None
    if cluster.memory_bytes is not None:
        return cluster.memory_bytes
    return GPUS[cluster.gpu].capacity_bytes if cluster.gpu else None


def fewest_ranks(parameters: float, stage: int, layout: str, capacity_bytes: float) -> int | None:
    """The fewest data-parallel ranks on which the state of `stage` fits; None when no number is enough.

    Inverts F02 by bisection, so that it agrees with `fits` to the last byte: state falls with every rank.
    """
    choices = range(1, MOST_RANKS + 1)
    at = bisect_left(
        choices, True, key=lambda ranks: zero_state_bytes(parameters, ranks, stage, layout) <= capacity_bytes
    )
    return choices[at] if at < MOST_RANKS else None
