"""What of a step's communication compute waits for: each collective beside the compute that hides it, in one ledger."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from app.theory.planner.engine.communication import Traffic, step_traffic
from app.theory.planner.engine.ledger import Ledger, Pass
from app.theory.planner.engine.placement import Stage
from app.theory.planner.engine.plan import Plan

COLUMN_SHARE = 0.5  # of weight-gradient time runs beside the collectives of backward: that of column-parallel matrices
ONCE = ("last backward", "first forward", "blocking once")  # a step, not a micro-batch


@dataclass(frozen=True)
class StageSeconds:
    """Compute of one stage and micro-batch, and the exposed communication inside it."""

    forward: float
    backward: float
    recompute: float
    weight_gradients: float
    attention: float
    exposed: float
    products: float = 0.0  # matrix products of layers, forward

    @property
    def busy(self) -> float:
        return self.forward + self.backward + self.recompute + self.exposed

    @property
    def ahead(self) -> float:
        """Forward, with its share of what is exposed."""
        compute = self.forward + self.backward + self.recompute
        return self.forward * self.busy / compute


def exposed(plan: Plan, stage: Stage, bare: StageSeconds) -> list[tuple[Traffic, float]]:
    """Every collective of a stage, with the seconds of a step that it shows. `bare` is the stage's compute."""
    ledger = Ledger(bare.forward, bare.backward + bare.recompute, plan.network.contention)
    rows = step_traffic(plan, stage)
    # What belongs to a micro-batch claims its compute before what runs once a step.
    shown = {row: _inside(plan, bare, ledger, row) for row in rows if row.when not in ONCE}
    shown |= {row: _ending(plan, stage, ledger, row) for row in rows if row.when in ONCE}
    return [(row, min(row.seconds, shown[row])) for row in rows]


def shown_alone(plan: Plan, bare: StageSeconds, row: Traffic) -> float:
    """The least seconds per step that can show of a collective of every micro-batch: no other claims its compute."""
    return min(row.seconds, _inside(plan, bare, Ledger(inf, inf, plan.network.contention), row))


def _inside(plan: Plan, bare: StageSeconds, ledger: Ledger, row: Traffic) -> float:
    """Seconds per step that show of a collective of every micro-batch."""
    each, link, overlap = row.seconds / plan.micro_batches, row.ranks.link, plan.overlap
    if row.when.startswith("tensor"):
        each = _tensor(plan, bare, ledger, row)
    elif row.when == "attention":
        third = bare.attention / 3  # forward and twice as much backward: as the keys and values travel
        ahead = ledger.every("forward", link, each / 3, third)
        each = ahead + ledger.every("backward", link, each * 2 / 3, 2 * third)
    elif (row.when == "experts" and overlap.expert) or (row.when == "pipeline" and overlap.pipeline):
        each = ledger.every("forward", link, each / 2) + ledger.every("backward", link, each / 2)
    elif row.when == "unit forward" and overlap.weights:
        each = ledger.every("forward", link, each) + row.collective_seconds  # the first unit has nothing to hide behind
    elif row.when == "unit backward":
        gathers = row.operation == "all_gather"
        if overlap.weights if gathers else overlap.data:
            each = ledger.every("backward", link, each) + (0.0 if gathers else row.collective_seconds)
    return plan.micro_batches * each


def _tensor(plan: Plan, bare: StageSeconds, ledger: Ledger, row: Traffic) -> float:
    """A tensor-parallel collective per micro-batch.

    In chunks, all but the first of as many as there are ranks run beside the product that makes or takes them
    (Wang et al. 2023, Overlap Communication with Dependent Computation via Decomposition; Transformer Engine's
    userbuffers), which needs the sequence spread over ranks.
    """
    each, link, ranks = row.seconds / plan.micro_batches, row.ranks.link, row.ranks.size
    way: Pass = "forward" if row.when == "tensor forward" else "backward"
    beside_gradients = way == "backward" and plan.profile.overlaps_tensor_backward
    if plan.overlap.tensor and plan.parallel.sequence_parallel:
        products = bare.products if way == "forward" else 2 * bare.products
        if beside_gradients:  # a product that needs none of it hides even the first chunk
            return ledger.every(way, link, each, products)
        return each / ranks + ledger.every(way, link, each * (ranks - 1) / ranks, products)
    if beside_gradients:
        # All-gather and reduce-scatter share what hides them. The gather of inputs runs beside the products that give
        # the inputs' gradients, which do not need it and take as long.
        halves = 2 if plan.parallel.sequence_parallel and row.when == "tensor backward" else 1
        return ledger.every(way, link, each, COLUMN_SHARE * bare.weight_gradients / halves)
    return each


def _ending(plan: Plan, stage: Stage, ledger: Ledger, row: Traffic) -> float:
    """Seconds that show of a collective of gradients or updated weights. The last layer's has nothing to hide behind.

    With v interleaved chunks on p stages a rank's chunks end p passes apart, and so do their gradients
    (Narayanan et al. 2021, section 2.2).
    """
    p, v = plan.parallel.pipeline, plan.parallel.virtual_stages
    rounds = v > 1 and plan.schedule.idles == "1f1b" and plan.micro_batches >= p
    passes = (p * (v - 1) + 1) / v if rounds else 1.0
    edge = row.collective_seconds / max(1, stage.layers)
    if row.when == "last backward" and plan.overlap.data:
        return ledger.once("backward", row.ranks.link, row.seconds, row.count * passes) + edge
    if row.when == "first forward" and plan.overlap.weights:
        return ledger.once("forward", row.ranks.link, row.seconds, passes) + edge
    return row.seconds
