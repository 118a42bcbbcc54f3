"""What a training plan needs: an EstimateRequest in, an Estimate out, in the shapes programs rely on.

A model of which only the size is known gets model state alone; what is not estimated is null and said so in
`assumptions`: a missing term must never read as zero.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Any

from app.theory.hardware import GPUS
from app.theory.planner.engine.communication import Traffic, step_traffic
from app.theory.planner.engine.flops import hardware_flops, model_flops, stage_flops
from app.theory.planner.engine.memory import COMPONENTS, StageMemory, stage_memories
from app.theory.planner.engine.plan import Plan
from app.theory.planner.engine.resolve import plan_of, profile_of
from app.theory.planner.engine.timing import StageSeconds, StepSeconds, idle_seconds, step_seconds
from app.theory.planner.remarks import assumptions, state_assumptions, warnings
from app.theory.planner.requests import EstimateRequest, ParameterCount, parse_estimate_request
from app.theory.state import zero_state_bytes
from app.theory.transformer import active_parameter_count, parameter_count

__all__ = ["estimate", "fewest_ranks", "parse_estimate_request"]

TIMES = (
    "step_seconds",
    "compute_seconds",
    "recompute_seconds",
    "bubble_seconds",
    "exposed_communication_seconds",
    "optimizer_seconds",
    "tokens_per_second",
)
RATES = ("mfu", "hfu", "model_flops_per_second_per_gpu", "hardware_flops_per_second_per_gpu")
MOST_RANKS = 10**9  # what "no number of ranks" means


def estimate(request: EstimateRequest) -> dict[str, Any]:
    """The Estimate of a plan as JSON data: bytes and seconds as floats, fractions in 0..1."""
    if isinstance(request.model, ParameterCount):
        return _state_only(request, request.model.parameters)
    plan, capacity = plan_of(request), _capacity(request)
    memories = stage_memories(plan)
    worst = max(memories, key=lambda memory: memory.total)
    timed = step_seconds(plan, memories) if plan.device is not None else None
    model, sequence = plan.model, plan.training.sequence
    bubble = timed.bubble_fraction if timed else _bubble(plan)
    return {
        "parameters": {
            "total": parameter_count(model, sequence),
            "per_rank": max(memory.held.total for memory in memories),
            "active": active_parameter_count(model, sequence),
        },
        "memory": {
            "per_rank_bytes": _components(worst),
            "by_stage": [_stage(plan, memory) for memory in memories],
            "host_bytes": worst.host,
            "capacity_bytes": capacity,
            "fits": None if capacity is None else worst.total <= capacity,
        },
        "communication": _communication(plan, timed, worst),
        "pipeline": {
            "bubble_fraction": bubble,
            "in_flight_micro_batches": [memory.in_flight for memory in memories],
            "micro_batches": plan.micro_batches,
        },
        **_speed(plan, timed),
        "assumptions": assumptions(request, plan),
        "warnings": warnings(request, plan, worst, capacity, bubble),
    }


def _components(memory: StageMemory) -> dict[str, float]:
    return {**{name: getattr(memory, name) for name in COMPONENTS}, "total": memory.total}


def _stage(plan: Plan, memory: StageMemory) -> dict[str, Any]:
    flops = stage_flops(plan, memory.stage)
    return {
        "stage": memory.stage.index,
        "layers": memory.stage.layers,
        "parameters": memory.held.total,
        "in_flight_micro_batches": memory.in_flight,
        "forward_flops_per_token": {"matrices": flops.matrices, "attention": flops.attention, "head": flops.head},
        "bytes": _components(memory),
    }


def _communication(plan: Plan, timed: StepSeconds | None, worst: StageMemory) -> list[dict[str, Any]]:
    """The slowest stage's collectives; without a GPU the fullest stage's, which take no known time."""
    rows: list[tuple[Traffic, float]] = (
        list(timed.traffic) if timed else [(row, 0.0) for row in step_traffic(plan, worst.stage)]
    )
    return [
        {
            "name": row.name,
            "operation": row.operation,
            "group": row.group,
            "group_size": row.ranks.size,
            "count_per_step": row.count,
            "payload_bytes_per_rank_per_step": row.payload_bytes,
            "wire_bytes_per_rank_per_step": row.wire_bytes,
            "link": row.ranks.link,
            "seconds": row.seconds if timed else None,
            "exposed_seconds": exposed if timed else None,
        }
        for row, exposed in rows
    ]


def _bubble(plan: Plan) -> float:
    """Idle over total of equal stages whose backward is two forwards (F22 to F24), where nothing can be timed."""
    equal = StageSeconds(forward=1.0, backward=2.0, recompute=0.0, weight_gradients=1.0, attention=0.0, exposed=0.0)
    fill = idle_seconds(plan, [equal] * plan.parallel.pipeline, 0)
    return fill / (plan.micro_batches * equal.busy + fill)


def _speed(plan: Plan, timed: StepSeconds | None) -> dict[str, Any]:
    if timed is None or plan.device is None:
        return {"time": dict.fromkeys(TIMES), **dict.fromkeys(RATES)}
    gpus = plan.parallel.world_size
    sequences = plan.micro_batches * plan.training.micro_batch * plan.parallel.data
    model, hardware = (
        flops(plan) * sequences * plan.training.sequence / timed.step / gpus for flops in (model_flops, hardware_flops)
    )
    times = (timed.step, timed.compute, timed.recompute, timed.bubble, timed.exposed, timed.optimizer)
    return {
        "time": dict(zip(TIMES, (*times, sequences * plan.training.sequence / timed.step), strict=True)),
        "mfu": model / plan.device.peak_flops_per_second,
        "hfu": hardware / plan.device.peak_flops_per_second,
        "model_flops_per_second_per_gpu": model,
        "hardware_flops_per_second_per_gpu": hardware,
    }


def _state_only(request: EstimateRequest, total: float) -> dict[str, Any]:
    """Model state of a model that is only a number of parameters, split evenly (F02, F27)."""
    parallel, capacity = request.parallel, _capacity(request)
    per_rank = total / (parallel.tensor * parallel.pipeline)
    shards = parallel.shard or parallel.data * parallel.context
    parts = {
        part: zero_state_bytes(per_rank, shards, parallel.zero, request.training.state_layout, part)
        for part in ("parameters", "gradients", "optimizer")
    }
    state = sum(parts.values())
    return {
        "parameters": {"total": total, "per_rank": per_rank, "active": total},
        "memory": {
            "per_rank_bytes": {**parts, "activations": None, "temporary": None, "total": state},
            "by_stage": [],
            "host_bytes": None,
            "capacity_bytes": capacity,
            "fits": None if capacity is None else state <= capacity,
        },
        "communication": [],
        "pipeline": {"bubble_fraction": None, "in_flight_micro_batches": [], "micro_batches": None},
        "time": dict.fromkeys(TIMES),
        **dict.fromkeys(RATES),
        "assumptions": state_assumptions(request, shards, profile_of(request)),
        "warnings": _state_warnings(request, state, capacity),
    }


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
