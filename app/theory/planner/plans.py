"""From a shape, an order and a sharding to the plan the engine takes, and to the request that asks for the same."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import get_args

from app.theory.planner.engine.plan import Plan
from app.theory.planner.engine.resolve import overlaps_of, plan_of
from app.theory.planner.fields import PlanParallel
from app.theory.planner.requests import Cluster, EstimateRequest
from app.theory.planner.software import layout_of
from app.theory.planner.space import GATHERS, KEEPS, Order, Shape, Sharding, Space
from labs.spec import Precision, Recompute, StateLayout

PLAIN = Order("1f1b", 1)
UNSHARDED, KEPT = Sharding(0), Sharding(3, 0, KEEPS)
_NOTHING = PlanParallel()


class Plans:
    """Plans of one search: `base` is its model, training and cluster. What breaks a rule is not asked for."""

    def __init__(self, base: EstimateRequest, space: Space) -> None:
        self.base, self.space = base, space
        self._resolved = lru_cache(maxsize=None)(self._resolve)

    def request(self, shape: Shape, order: Order, sharding: Sharding) -> EstimateRequest:
        """The request of a plan, with what the search chose set and nothing else."""
        return self._request(shape, self._parallel(shape, order, sharding))

    def plan(self, shape: Shape, order: Order, sharding: Sharding) -> Plan:
        """The plan of a request, without reading one: the device and the network are the same for many."""
        parallel = self._parallel(shape, order, sharding)
        known = self._resolved(shape.profile, shape.precision)
        m = self.space.micro_batches(shape)
        chosen = {"micro_batch": shape.micro_batch, **_recomputed(shape.recompute)}
        training = known.training.model_copy(update=chosen)
        overlap = overlaps_of(parallel, known.profile)
        return replace(known, training=training, parallel=parallel, micro_batches=m, overlap=overlap)

    def at_best(self, shape: Shape) -> Plan:
        """A plan of the shape in which experts' tokens are hidden if any schedule hides them."""
        plan = self.plan(shape, PLAIN, UNSHARDED)
        asked = plan.parallel.overlap.expert
        return replace(plan, overlap=replace(plan.overlap, expert=asked is None or asked))

    def leanest(self, shape: Shape, gathers: bool) -> tuple[Sharding, ...]:
        """Shardings of which one holds the least that any can. `gathers`: of those that gather every micro-batch."""
        if shape.data * shape.context == 1:
            return (UNSHARDED,)
        zeros = self.space.zeros_of(shape)
        if gathers:
            return (Sharding(3, 0, GATHERS),)
        once = [zero for zero in zeros if zero < 3]
        return (*((Sharding(max(once)),) if once else ()), *((KEPT,) if 3 in zeros else ()))

    def _parallel(self, shape: Shape, order: Order, sharding: Sharding) -> PlanParallel:
        chosen: dict[str, object] = {
            "data": shape.data,
            "tensor": shape.tensor,
            "pipeline": shape.pipeline,
            "virtual_stages": order.virtual_stages,
            "context": shape.context,
            "expert": shape.expert,
            "sequence_parallel": shape.tensor > 1,
            "zero": sharding.zero,
            "schedule": order.schedule,
        }
        if sharding.shard:
            chosen["shard"] = sharding.shard
        if sharding.reshard:
            chosen["reshard_after_forward"] = sharding.reshard == GATHERS
        if shape.expert_tensor:
            chosen["expert_tensor"] = shape.expert_tensor
        if shape.expert_nodes:
            chosen["expert_nodes"] = shape.expert_nodes
        if self.space.axes.overlap is not None:
            chosen["overlap"] = self.space.overlaps[shape.overlap]
        return _NOTHING.model_copy(update=chosen)

    def _request(self, shape: Shape, parallel: PlanParallel) -> EstimateRequest:
        chosen = {
            "micro_batch": shape.micro_batch,
            "precision": shape.precision,
            "state_layout": self._layout(shape.profile, shape.precision),
            **_recomputed(shape.recompute),
        }
        training = self.base.training.model_copy(update=chosen)
        changed = {"training": training, "parallel": parallel, "profile": shape.profile}
        return self.base.model_copy(update=changed)

    def _layout(self, profile: str, precision: Precision) -> StateLayout:
        """As asked, or as the plan's software keeps state."""
        training = self.base.training
        return training.state_layout if self.space.keeps_layout else layout_of(profile, precision)

    def _resolve(self, profile: str, precision: Precision) -> Plan:
        kept = {"precision": precision, "state_layout": self._layout(profile, precision), "global_batch": None}
        training = self.base.training.model_copy(update=kept)
        cluster = self.base.cluster or Cluster()
        changed = {"training": training, "profile": profile, "cluster": cluster}
        return plan_of(self.base.model_copy(update=changed))


@lru_cache(maxsize=64)
def _recomputed(choice: str) -> dict[str, object]:
    """Fields of a plan's training for what a shape recomputes."""
    if choice in get_args(Recompute):
        return {"recompute": choice}
    return {"recompute": "selective", "recompute_modules": tuple(choice.split("+"))}
