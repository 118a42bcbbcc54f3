"""What a rank holds, stage by stage and component by component, at its fullest moment."""

from __future__ import annotations

from dataclasses import dataclass

from app.theory.pipeline import in_flight
from app.theory.planner.engine.kept import eager_norm_bytes, kept_bytes, live_bytes
from app.theory.planner.engine.placement import Held, Stage, ends_held, layer_held, stage_held
from app.theory.planner.engine.plan import Plan

KEPT_LOGIT_BYTES = 4.0  # the log-softmax a loss keeps for its backward
COMPONENTS = ("parameters", "gradients", "optimizer", "activations", "temporary")


@dataclass(frozen=True)
class StageMemory:
    """Bytes on one rank of a stage. `host` is what offload keeps in the node's memory instead, or in a file."""

    stage: Stage
    held: Held
    in_flight: float
    parameters: float
    gradients: float
    optimizer: float
    activations: float
    temporary: float
    host: float

    @property
    def total(self) -> float:
        return self.parameters + self.gradients + self.optimizer + self.activations + self.temporary


def stage_memories(plan: Plan, stages: tuple[Stage, ...] | None = None) -> tuple[StageMemory, ...]:
    """Memory of one rank of every stage, or of some. Stages of the same layers differ in what is in flight alone."""
    parallel = plan.parallel
    known: dict[tuple[int, int, bool, bool], _Fixed] = {}
    found = []
    for stage in plan.stages if stages is None else stages:
        kind = (stage.dense_layers, stage.routed_layers, stage.first, stage.last)
        if kind not in known:
            known[kind] = _fixed(plan, stage)
        fixed = known[kind]
        flying = in_flight(
            parallel.schedule, stage.index, parallel.pipeline, plan.micro_batches, parallel.virtual_stages
        )
        activations = fixed.kept * flying + fixed.once
        found.append(StageMemory(stage, fixed.held, flying, *fixed.state, activations, fixed.temporary, fixed.host))
    return tuple(found)


@dataclass(frozen=True)
class _Fixed:
    """What does not depend on the micro-batches in flight: `kept` by each of them, `once` by the running one."""

    held: Held
    state: tuple[float, float, float]
    kept: float
    once: float
    temporary: float
    host: float


STATE = ("parameters", "gradients", "optimizer")
AWAY = {"none": (), "optimizer": ("gradients", "optimizer"), "file": ("gradients", "optimizer"), "all": STATE}


def _fixed(plan: Plan, stage: Stage) -> _Fixed:
    parallel, away = plan.parallel, AWAY[plan.training.offload]
    sizes = (parallel.tensor, parallel.expert, parallel.pipeline, parallel.expert_cut)
    held = stage_held(plan.model, stage, plan.training.sequence, *sizes)
    state = [_sharded(plan, held, name) for name in STATE]
    host = sum(size for name, size in zip(STATE, state, strict=True) if name in away)
    here = (0.0 if name in away else size for name, size in zip(STATE, state, strict=True))
    parameters, gradients, optimizer = here
    kept, once = _activations(plan, stage)
    temporary = max(_temporary(plan, stage, held, bool(away)), _at_loss(plan, stage, gradients))
    return _Fixed(held, (parameters, gradients, optimizer), kept, once, temporary, host)


def state_bytes(plan: Plan, held: Held) -> float:
    """Model state of a rank, wherever it is kept."""
    return sum(_sharded(plan, held, name) for name in STATE)


def _sharded(plan: Plan, held: Held, component: str) -> float:
    """Bytes of one component of model state under ZeRO (F02); experts are sharded over the ranks that repeat them."""
    each = plan.optimizer_bytes if component == "optimizer" else getattr(plan.layout, component)
    if plan.parallel.zero < {"optimizer": 1, "gradients": 2, "parameters": 3}[component]:
        return float(each * held.total)
    return float(each * _shard(plan, held))


def updated_parameters(plan: Plan, held: Held) -> float:
    """How many of the parameters it holds a rank updates itself: its shard under any ZeRO stage, else all (F02)."""
    return _shard(plan, held) if plan.parallel.zero else held.total


def _shard(plan: Plan, held: Held) -> float:
    return held.dense / plan.shards + held.expert / plan.expert_shards


def _activations(plan: Plan, stage: Stage) -> tuple[float, float]:
    """Kept by all layers for one micro-batch, and what one layer's backward or the loss needs besides, whichever is
    more."""
    layers = plan.layers_of(stage)
    kept = sum(count * kept_bytes(layer) for layer, count in layers)
    live = max((live_bytes(layer) for layer, _ in layers), default=0.0)
    ends = _embedding_bytes(plan) if stage.first else 0.0
    if stage.last and plan.schedule.keeps == "all" and plan.parallel.pipeline > 1:
        ends += KEPT_LOGIT_BYTES * plan.tokens * plan.model.vocab / plan.parallel.tensor  # all losses wait for backward
    return kept + ends, max(live, _loss_bytes(plan) if stage.last else 0.0)


def _stream_bytes(plan: Plan) -> float:
    """One value of the hidden size per token, spread by sequence parallelism."""
    spread = plan.parallel.tensor if plan.parallel.sequence_parallel else 1
    return plan.tokens * plan.model.hidden * plan.compute_bytes / spread


def _embedding_bytes(plan: Plan) -> float:
    """The embeddings' dropout mask, one byte a value."""
    return _stream_bytes(plan) / plan.compute_bytes if plan.layer(False).dropout else 0.0


def _loss_bytes(plan: Plan) -> float:
    """Input of the final norm and of the head, and the logits with what the loss makes of them."""
    logits = plan.tokens * plan.model.vocab / plan.parallel.tensor
    upcast = eager_norm_bytes(plan.layer(False)) / plan.compute_bytes
    each = plan.profile.loss_bytes + (plan.profile.divided_loss_bytes if plan.parallel.tensor > 1 else 0.0)
    return (2 + upcast) * _stream_bytes(plan) + logits * each


def _at_loss(plan: Plan, stage: Stage, gradients: float) -> float:
    """What the loss's backward makes, with the unit outside the layers and the last layer gathered, less the room of
    `gradients` that are not there yet: a first micro-batch's come unit by unit where weights are sharded."""
    if not stage.last or not plan.profile.loss_backward_bytes:
        return 0.0
    made = plan.profile.loss_backward_bytes * plan.tokens * plan.model.vocab / plan.parallel.tensor
    if plan.parallel.zero < 3 or plan.shards == 1 or plan.micro_batches > 1:
        return made
    root = ends_held(plan.model, stage, plan.training.sequence, plan.parallel.tensor, plan.parallel.pipeline)
    return made + (root + _largest_unit(plan, stage)) * plan.compute_bytes - gradients


def _largest_unit(plan: Plan, stage: Stage) -> float:
    """Parameters of a stage's largest layer, on a tensor rank."""
    parallel = plan.parallel
    experts = (parallel.expert, parallel.expert_cut)
    return max(
        (layer_held(plan.model, each.routed, parallel.tensor, *experts).total for each, _ in plan.layers_of(stage)),
        default=0.0,
    )


def _temporary(plan: Plan, stage: Stage, held: Held, offloaded: bool) -> float:
    """Gathered units and their gradients where weights are sharded or away, staging of reductions otherwise."""
    profile, tensor = plan.profile, plan.parallel.tensor
    gathers = (plan.parallel.zero == 3 and plan.shards > 1) or plan.training.offload == "all"
    if not gathers:
        return min(profile.bucket_bytes, held.total * plan.reduce_bytes) if plan.replicas > 1 or offloaded else 0.0
    if plan.keeps_weights and plan.training.offload == "none":
        return held.total * (plan.compute_bytes + plan.reduce_bytes)  # gathered weights, and gradients summed whole
    unit = _largest_unit(plan, stage)
    root = ends_held(plan.model, stage, plan.training.sequence, tensor, plan.parallel.pipeline)
    gathered = min(profile.live_units, stage.layers) * unit + (root if profile.keeps_root else max(0.0, root - unit))
    head = plan.model.vocab * plan.model.hidden / tensor if stage.last else 0.0  # its gradient is whole until the end
    return (gathered + unit + head) * plan.compute_bytes + unit * plan.reduce_bytes
