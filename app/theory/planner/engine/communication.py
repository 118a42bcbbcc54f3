"""Which collectives a step has on the busiest rank: how often, how many bytes, over which links.

Payload is the tensor handed to the collective (the full one for an all-gather or reduce-scatter), wire is what one rank
sends. Counts are per optimizer step.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from app.theory.collectives import half_ring_bytes, ring_all_reduce_bytes
from app.theory.context import ring_sends
from app.theory.planner.engine.casting import CASTS
from app.theory.planner.engine.compressing import compressed
from app.theory.planner.engine.network import (
    Group,
    all_reduce_seconds,
    all_to_all_seconds,
    half_ring_seconds,
    send_seconds,
)
from app.theory.planner.engine.placement import Stage, ends_held, layer_held
from app.theory.planner.engine.plan import Plan
from app.theory.planner.engine.profiles import gathers_again, selected
from app.theory.planner.engine.shapes import attention_shape
from labs.spec import V_SHAPED

SIXTEEN_BITS = 2.0  # bytes a value


@dataclass(frozen=True)
class Traffic:
    """All collectives of one kind in a step. One takes `collective_seconds`; `when` says what hides it."""

    name: str
    operation: str
    group: str
    ranks: Group
    count: float
    payload_bytes: float
    wire_bytes: float
    collective_seconds: float
    when: str

    @property
    def seconds(self) -> float:
        return self.count * self.collective_seconds


def step_traffic(plan: Plan, stage: Stage) -> tuple[Traffic, ...]:
    """Everything a rank of `stage` takes part in during one step."""
    return (*layer_traffic(plan, stage), *_pipeline(plan, stage), *_data(plan, stage))


def layer_traffic(plan: Plan, stage: Stage) -> tuple[Traffic, ...]:
    """What layers wait for inside a micro-batch, in proportion to how many there are, and ends likewise."""
    return (*_tensor(plan, stage), *_context(plan, stage), *_expert(plan, stage))


def _row(
    plan: Plan, name: str, operation: str, group: str, count: float, size_bytes: float, when: str
) -> Iterator[Traffic]:
    """One row, unless the group is a single rank or there is nothing to send."""
    ranks = plan.ranks(group)
    if ranks.size == 1 or count <= 0 or size_bytes <= 0:
        return
    if operation == "all_reduce":
        wire, seconds = (
            ring_all_reduce_bytes(size_bytes, ranks.size),
            all_reduce_seconds(plan.network, ranks, size_bytes),
        )
    elif operation == "all_to_all":
        wire = half_ring_bytes(size_bytes, ranks.size)
        seconds = all_to_all_seconds(plan.network, ranks, size_bytes)
    else:
        wire, seconds = half_ring_bytes(size_bytes, ranks.size), half_ring_seconds(plan.network, ranks, size_bytes)
    yield Traffic(name, operation, group, ranks, count, count * size_bytes, count * wire, seconds, when)


def _tensor(plan: Plan, stage: Stage) -> Iterator[Traffic]:
    """Behind attention and behind the MLP, forward and again backward; full recomputation repeats forward's.

    With sequence parallelism backward gathers the inputs of both blocks, and of the head, again where they were not
    kept whole (F20). Source: Shoeybi et al. 2019, section 3; Korthikanti et al. 2022, section 4.2.2.
    """
    size = plan.tokens * plan.model.hidden * plan.compute_bytes
    gathered = _cast_share(plan)  # what a product gathers is cast before
    blocks = _divided_blocks(plan, stage) * plan.micro_batches
    forward = blocks * 2 if plan.training.recompute == "full" else blocks + _repeated_blocks(plan, stage)
    ends = plan.micro_batches * (stage.first + stage.last)  # the table's output, the head's input gradient
    for name, count, when in (
        ("Tensor parallel, forward", forward + plan.micro_batches * stage.first, "tensor forward"),
        ("Tensor parallel, backward", blocks + ends - plan.micro_batches * stage.first, "tensor backward"),
    ):
        if plan.parallel.sequence_parallel:
            yield from _row(plan, name, "all_gather", "tensor", count, size * gathered, when)
            yield from _row(plan, name, "reduce_scatter", "tensor", count, size, when)
        else:
            yield from _row(plan, name, "all_reduce", "tensor", count, size, when)
    if plan.parallel.sequence_parallel and gathers_again(plan.profile, plan.training):
        inputs = blocks + plan.micro_batches * stage.last
        name = "Tensor parallel, inputs gathered again"
        yield from _row(plan, name, "all_gather", "tensor", inputs, size * gathered, "tensor gather")


def _cast_share(plan: Plan) -> float:
    """Of 16-bit bytes, what travels of values that a product in fewer bits takes."""
    cast = CASTS.get(plan.training.precision)
    return cast.sent_bytes / SIXTEEN_BITS if cast else 1.0


def _divided_blocks(plan: Plan, stage: Stage) -> int:
    """Attention and MLP blocks of a micro-batch that tensor ranks divide. Whole experts get their tokens straight from
    the ranks that hold a part of the sequence, without the others'."""
    whole = plan.parallel.expert_cut < plan.parallel.tensor and plan.model.shared_experts == 0
    return 2 * stage.layers - (stage.routed_layers if whole else 0)


def _repeated_blocks(plan: Plan, stage: Stage) -> int:
    """MLPs of a step whose forward is repeated by selective recomputation."""
    modules = selected(plan.training)
    whole = plan.parallel.expert_cut < plan.parallel.tensor and plan.model.shared_experts == 0
    routed = "moe" in modules and not whole
    return plan.micro_batches * (stage.dense_layers * ("mlp" in modules) + stage.routed_layers * routed)


def _context(plan: Plan, stage: Stage) -> Iterator[Traffic]:
    """Keys and values go round the ring forward; backward takes them round again, and their gradients home (F60).

    Gathered, all have them before attention begins, gather them again in backward and scatter the sums of their
    gradients. Source: Llama team 2024, section 3.3.2; Transformer Engine's all-gather implementation.
    """
    ranks = plan.parallel.context
    if ranks == 1:
        return
    shape = attention_shape(plan.model, plan.parallel.tensor)
    size = plan.tokens * (shape.key + shape.value) * plan.compute_bytes
    if plan.parallel.context_exchange == "all-gather":
        layers, gathers = stage.layers * plan.micro_batches, 3 if plan.training.recompute == "full" else 2
        name = "Keys and values of all context ranks"
        yield from _row(plan, name, "all_gather", "context", layers * gathers, ranks * size, "blocking")
        name = "Gradients of keys and values"
        yield from _row(plan, name, "reduce_scatter", "context", layers, ranks * size, "blocking")
        return
    sends = ring_sends(ranks, plan.profile.ring_turns_back)
    again = sends.forward if plan.training.recompute == "full" else 0
    count = sends.training + again
    if plan.profile.sends_repeated_keys:  # and gradients, in fp32, of twice the bytes: the mean of all sends
        size = plan.tokens * (shape.query + shape.output) * plan.compute_bytes * (1 + sends.gradients / count)
    count *= stage.layers * plan.micro_batches
    yield Traffic(
        "Keys and values around the ring",
        "send",
        "context",
        plan.ranks("context"),
        count,
        count * size,
        count * size,
        send_seconds(plan.network, plan.ranks("context"), size),
        "attention",
    )


def _expert(plan: Plan, stage: Stage) -> Iterator[Traffic]:
    """Dispatch and combine, forward and backward (F14), of balanced experts.

    Limited to a few nodes, a token goes to each of them once, and as narrow as products take it; what comes back is
    summed in 16 bits (DeepSeek-AI 2024, sections 3.2.2 and 3.3.3).
    """
    spread = plan.parallel.tensor if plan.parallel.sequence_parallel else 1
    size = plan.tokens / spread * plan.model.active_experts * plan.model.hidden * plan.compute_bytes
    passes = 4 + 2 * (plan.training.recompute == "full" or "moe" in selected(plan.training))
    count = stage.routed_layers * plan.micro_batches * passes
    ranks, nodes = plan.ranks("expert"), plan.parallel.expert_nodes
    if nodes is not None and ranks.nodes > 1:
        # What enters a node crosses the network once, and goes on to its experts inside.
        size *= min(1.0, min(nodes, ranks.nodes) / plan.model.active_experts)
    if nodes is not None:
        size *= (_cast_share(plan) + 1.0) / 2  # dispatch is cast, combine is not
    yield from _row(plan, "Tokens to experts and back", "all_to_all", "expert", count, size, "experts")


def _pipeline(plan: Plan, stage: Stage) -> Iterator[Traffic]:
    """Activations to the next stage and their gradients back (F21). Each tensor rank sends what it has of them: its
    part with sequence parallelism, else all, unless the profile cuts them for the way."""
    parallel = plan.parallel
    if parallel.pipeline == 1:
        return
    parts = parallel.tensor if parallel.sequence_parallel or plan.profile.divides_sends else 1
    size = plan.tokens * plan.model.hidden * plan.compute_bytes / parts
    ends = (stage.first or stage.last) and parallel.schedule not in V_SHAPED
    count = plan.micro_batches * (2 * parallel.virtual_stages - ends)
    ranks = plan.ranks("pipeline")
    seconds = send_seconds(plan.network, ranks, size)
    yield Traffic(
        "Activations and their gradients",
        "send",
        "pipeline",
        ranks,
        count,
        count * size,
        count * size,
        seconds,
        "pipeline",
    )


def _data(plan: Plan, stage: Stage) -> Iterator[Traffic]:
    """Gradients, and weights where ZeRO shards them (F17): dense parameters, then experts."""
    parallel = plan.parallel
    dense = expert = 0.0
    for layer, count in plan.layers_of(stage):
        held = layer_held(plan.model, layer.routed, parallel.tensor, parallel.expert, parallel.expert_cut)
        dense, expert = dense + count * held.dense, expert + count * held.expert
    root = ends_held(plan.model, stage, plan.training.sequence, parallel.tensor, parallel.pipeline)
    if plan.keeps_weights:
        yield from _kept_weights(plan, "", dense + root)
        yield from _kept_weights(plan, " of experts", expert)
    elif parallel.zero == 3:
        yield from _sharded_weights(plan, "", dense, stage.layers)
        yield from _sharded_root(plan, root)
        yield from _sharded_weights(plan, " of experts", expert, stage.routed_layers)
    else:
        yield from _gradients(plan, "", dense + root)
        yield from _gradients(plan, " of experts", expert)
    yield from _replicas(plan, "", dense + root)
    yield from _replicas(plan, " of experts", expert)
    if plan.model.tied_embeddings and parallel.pipeline > 1 and stage.first != stage.last:
        table = plan.model.vocab * plan.model.hidden / parallel.tensor
        yield from _row(
            plan, "Gradients of the tied table", "all_reduce", "ends", 1, table * plan.reduce_bytes, "blocking once"
        )


def _group(of: str, what: str) -> str:
    """Experts have groups of their own: fewer ranks repeat them."""
    return f"expert {what}" if of else what


def _gradients(plan: Plan, of: str, parameters: float) -> Iterator[Traffic]:
    """One all-reduce a step, or a reduce-scatter and an all-gather of updated weights; ZeRO-2 reduces every
    micro-batch."""
    gradients, weights = parameters * plan.reduce_bytes, parameters * plan.layout.parameters
    if plan.parallel.zero == 0:
        group = _group(of, "data")
        sent = compressed(plan.compression, plan.model.hidden, parameters, plan.reduce_bytes)
        size = sent.bytes_of(plan.ranks(group).size)
        yield from _row(plan, f"Gradients{of}", sent.operation, group, 1, size, "last backward")
        return
    group = _group(of, "shard")
    count = plan.micro_batches if plan.parallel.zero == 2 else 1
    yield from _row(plan, f"Gradients{of}", "reduce_scatter", group, count, gradients, "last backward")
    yield from _row(plan, f"Updated weights{of}", "all_gather", group, 1, weights, "first forward")


def _sharded_weights(plan: Plan, of: str, layers: float, units: int) -> Iterator[Traffic]:
    """Every layer gathered forward and again backward, every gradient scattered, in every micro-batch."""
    for name, operation, bytes_each, when in (
        ("Weights{}, forward", "all_gather", plan.compute_bytes, "unit forward"),
        ("Weights{}, backward", "all_gather", plan.compute_bytes, "unit backward"),
        ("Gradients{}", "reduce_scatter", plan.reduce_bytes, "unit backward"),
    ):
        count, size = plan.micro_batches * units, layers * bytes_each / max(1, units)
        yield from _row(plan, name.format(of), operation, _group(of, "shard"), count, size, when)


def _kept_weights(plan: Plan, of: str, parameters: float) -> Iterator[Traffic]:
    """ZeRO-3 that keeps what it gathered: weights once a step, and their gradients after the last micro-batch."""
    gathered, reduced = parameters * plan.compute_bytes, parameters * plan.reduce_bytes
    group = _group(of, "shard")
    yield from _row(plan, f"Weights{of}", "all_gather", group, 1, gathered, "first forward")
    yield from _row(plan, f"Gradients{of}", "reduce_scatter", group, 1, reduced, "last backward")


def _sharded_root(plan: Plan, root: float) -> Iterator[Traffic]:
    """Embeddings, final norm and head: gathered once a micro-batch where they are kept until backward, else twice."""
    m = plan.micro_batches
    gathers = m if plan.profile.keeps_root else 2 * m
    yield from _row(plan, "Root unit's weights", "all_gather", "shard", gathers, root * plan.compute_bytes, "root")
    yield from _row(plan, "Root unit's gradients", "reduce_scatter", "shard", m, root * plan.reduce_bytes, "root")


def _replicas(plan: Plan, of: str, parameters: float) -> Iterator[Traffic]:
    """HSDP: shards of gradients are all-reduced between the groups that repeat them."""
    if plan.parallel.zero == 0:
        return
    shards = plan.expert_shards if of else plan.shards
    size = parameters * plan.reduce_bytes / shards
    name = f"Gradient shards{of} between replicas"
    yield from _row(plan, name, "all_reduce", _group(of, "replicate"), 1, size, "last backward")
