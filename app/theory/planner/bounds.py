"""What no plan of a shape can do better than: seconds and bytes that the engine never beats.

Sound because the slowest and the fullest stage are no less than the mean, because a collective hides behind no more
than all the compute there is for it, and because sharding over every replica leaves no more than any other sharding.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from app.theory.pipeline import FACTS, in_flight
from app.theory.planner.engine.communication import layer_traffic
from app.theory.planner.engine.exposure import StageSeconds, shown_alone
from app.theory.planner.engine.kept import kept_bytes
from app.theory.planner.engine.layer import layer_seconds
from app.theory.planner.engine.placement import Stage, ends_held, layer_held, stages
from app.theory.planner.engine.plan import Plan, expert_shards
from app.theory.planner.engine.shapes import layer_kinds
from app.theory.planner.engine.timing import ends_seconds
from app.theory.planner.space import Order
from app.theory.state import LAYOUTS
from labs.spec import V_SHAPED, Model

BOTH_ENDS = Stage(0, 0, 0, True, True)


@dataclass(frozen=True)
class LayerBytes:
    """A layer on one rank: parameters that data ranks repeat and that expert ranks divide, and what a micro-batch
    keeps."""

    dense: float
    expert: float
    kept: float


@dataclass(frozen=True)
class MemoryFloor:
    """Of the layers by kind, `routed` with how many there are, and of the ends' parameters. `plan` says the layout."""

    plan: Plan
    layers: Mapping[bool, tuple[int, LayerBytes]]
    ends: float


def memory_floor(plan: Plan) -> MemoryFloor:
    """Of all plans that deal layers as `plan` does, whatever their stages, schedule and sharding."""
    layers = {}
    for routed, count in layer_kinds(plan.model):
        held = layer_held(plan.model, routed, plan.parallel.tensor, plan.parallel.expert, plan.parallel.expert_cut)
        layers[routed] = (count, LayerBytes(held.dense, held.expert, kept_bytes(plan.layer(routed))))
    ends = ends_held(plan.model, BOTH_ENDS, plan.training.sequence, plan.parallel.tensor, 1)
    return MemoryFloor(plan, layers, ends)


def shape_bytes(floor: MemoryFloor, replicas: int, pipeline: int, zero: int) -> float:
    """Bytes of the fullest rank in any order, with state sharded over all `replicas` at ZeRO stage `zero` or below: the
    mean of the stages, each with one micro-batch."""
    dense = sum(count * each.dense for count, each in floor.layers.values()) + floor.ends
    expert = sum(count * each.expert for count, each in floor.layers.values())
    kept = sum(count * each.kept for count, each in floor.layers.values())
    return (_state_bytes(floor.plan, dense, expert, replicas, zero) + kept) / pipeline


def order_bytes(floor: MemoryFloor, replicas: int, pipeline: int, zero: int, micro_batches: int, order: Order) -> float:
    """Bytes of the first stage's layers in one order."""
    schedule, v = order
    first = stages(floor.plan.model, pipeline, v, schedule in V_SHAPED)[0]
    flying, found = in_flight(schedule, 0, pipeline, micro_batches, v), 0.0
    for routed, count in ((False, first.dense_layers), (True, first.routed_layers)):
        if count:
            each = floor.layers[routed][1]
            state = _state_bytes(floor.plan, each.dense, each.expert, replicas, zero)
            found += count * (state + flying * each.kept)
    return found


def _state_bytes(plan: Plan, dense: float, expert: float, replicas: int, zero: int) -> float:
    layout, away = LAYOUTS[plan.training.state_layout], plan.training.offload
    parallel = plan.parallel
    same = expert_shards(replicas, parallel.tensor // parallel.expert_cut, parallel.expert)
    whole, share = dense + expert, dense / replicas + expert / same
    held = 0.0 if away == "all" else layout.parameters * (share if zero == 3 else whole)
    if away == "none":
        held += layout.gradients * (share if zero >= 2 else whole)
        held += plan.optimizer_bytes * (share if zero >= 1 else whole)
    return held


@dataclass(frozen=True)
class LayerFloor:
    """A layer and micro-batch on one rank: compute and what of its collectives shows at the least. `forward` is
    forward's share of the compute, `late` what is left where weight gradients, put off, fill two gaps."""

    seconds: float
    forward: float
    late: float


@dataclass(frozen=True)
class TimeFloor:
    """Of the dense and the routed layer, where there is one, and of embedding, head and loss together."""

    layers: tuple[tuple[int, LayerFloor], ...]
    dense: LayerFloor | None
    routed: LayerFloor | None
    ends_seconds: float

    @property
    def seconds(self) -> float:
        """A micro-batch on one stage."""
        return sum(count * each.seconds for count, each in self.layers) + self.ends_seconds


def time_floor(plan: Plan, dense: LayerFloor | None) -> TimeFloor:
    """Of all plans that deal layers as `plan` does, whatever their stages, schedule and sharding. `dense` is its dense
    layer, where it was worked out for other experts."""
    assert plan.device is not None, "a search names a GPU"
    floors: dict[bool, tuple[int, LayerFloor]] = {}
    for routed, count in layer_kinds(plan.model):
        floors[routed] = (count, dense if dense is not None and not routed else layer_floor(plan, routed))
    by_kind = {kind: floor for kind, (_, floor) in floors.items()}
    ends = sum(ends_seconds(plan, BOTH_ENDS, plan.device))
    return TimeFloor(tuple(floors.values()), by_kind.get(False), by_kind.get(True), ends)


def layer_floor(plan: Plan, routed: bool) -> LayerFloor:
    assert plan.device is not None, "a search names a GPU"
    layer = layer_seconds(plan.layer(routed), plan.device)
    bare = StageSeconds(
        layer.forward, layer.backward, layer.recompute, layer.weight_gradients, layer.attention, 0.0, layer.products
    )
    rows = layer_traffic(plan, Stage(0, int(not routed), int(routed), False, False))
    seconds = bare.busy + sum(shown_alone(plan, bare, row) for row in rows) / plan.micro_batches
    return LayerFloor(seconds, bare.forward / bare.busy, max(0.0, seconds - 2 * bare.weight_gradients))


def shape_seconds(floor: TimeFloor, pipeline: int, micro_batches: int) -> float:
    """Seconds of a step on `pipeline` stages in any order: the slowest works through all micro-batches."""
    return micro_batches * floor.seconds / pipeline


def order_seconds(floor: TimeFloor, model: Model, pipeline: int, micro_batches: int, order: Order) -> float:
    """The same in one order, with what the slowest stage waits at the least while the pipeline fills and drains.

    Of stages between `least` and `most` busy seconds, those ahead of the slowest run a forward first, and those behind
    it run both passes before it drains; it has one of its own less to do meanwhile for each.
    """
    v, p, m = order.virtual_stages, pipeline, micro_batches
    kinds = _stage_kinds(model, p, v, order.schedule in V_SHAPED)
    busy = [_sum(floor, kind, "seconds") for kind in kinds]
    least, most = min(busy), max(busy)
    work = m * max(most, floor.seconds / p)
    if p == 1:
        return work
    forward = min(1 / 3, *(each.forward for _, each in floor.layers))  # the head's is a third, the table's half
    idles = FACTS[order.schedule].idles
    if idles == "zb-h1":
        return work + (p - 1) / v * min(_sum(floor, kind, "late") for kind in kinds)
    if idles == "v":
        return work + (p - 1) * forward * least / 2
    if m * v < p - 1:
        return work
    return work + (p - 1) / v * max(0.0, min(forward * least, 2 * least - work / m))


def _sum(floor: TimeFloor, kind: tuple[int, int], what: str) -> float:
    dense, routed = kind
    found = dense * getattr(floor.dense, what) if dense else 0.0
    return found + (routed * getattr(floor.routed, what) if routed else 0.0)


@lru_cache(maxsize=4096)
def _stage_kinds(model: Model, pipeline: int, virtual_stages: int, v_shaped: bool) -> frozenset[tuple[int, int]]:
    """(dense, routed) layers of the stages there are."""
    dealt = stages(model, pipeline, virtual_stages, v_shaped)
    return frozenset((stage.dense_layers, stage.routed_layers) for stage in dealt)
