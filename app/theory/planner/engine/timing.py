"""How long a step takes: compute by roofline, communication that nothing hides, the pipeline's fill and drain, the
update.

The slowest stage works through all micro-batches and waits while the pipeline fills and drains, in closed form: exact
for equal stages (F22, F23), and within a few per cent of the event simulation for unequal ones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil

from app.theory.planner.engine.communication import Traffic
from app.theory.planner.engine.exposure import ONCE, StageSeconds, exposed
from app.theory.planner.engine.host import offload_seconds
from app.theory.planner.engine.layer import layer_seconds
from app.theory.planner.engine.memory import StageMemory, updated_parameters
from app.theory.planner.engine.placement import Stage
from app.theory.planner.engine.plan import Plan
from app.theory.planner.engine.roofline import Device, matmul_seconds, stream_seconds


@dataclass(frozen=True)
class StepSeconds:
    """One optimizer step. `traffic` is the slowest stage's, with what of it is exposed."""

    step: float
    compute: float
    recompute: float
    bubble: float
    exposed: float
    optimizer: float
    bubble_fraction: float
    traffic: tuple[tuple[Traffic, float], ...]


def step_seconds(plan: Plan, memories: tuple[StageMemory, ...]) -> StepSeconds:
    """The time of a step, by its parts; they sum to it. The plan has a device and a network."""
    found = _stages(plan)
    slowest, fill = _slowest(plan, found)
    stage, exposures = found[slowest]
    m = plan.micro_batches
    busy = m * stage.busy
    ending = max((rows for _, rows in found), key=_tail)
    moved, host_update = offload_seconds(plan, max(memories, key=lambda memory: memory.held.total))
    waits = max(0.0, moved - m * (stage.backward + stage.recompute))  # gradients leave while backward runs
    offloads = plan.training.offload != "none"
    update = host_update if offloads else max(_optimizer_seconds(plan, memory) for memory in memories)
    pipeline = busy + fill
    mean = m * sum(each.busy for each, _ in found) / len(found)
    tail = _tail(ending) + waits
    return StepSeconds(
        step=pipeline + tail + update,
        compute=m * (stage.forward + stage.backward),
        recompute=m * stage.recompute,
        bubble=fill,
        exposed=m * stage.exposed + tail,
        optimizer=update,
        bubble_fraction=max(0.0, (pipeline - mean) / pipeline),
        traffic=(
            *(pair for pair in exposures if not _ends_step(pair[0])),
            *(pair for pair in ending if _ends_step(pair[0])),
        ),
    )


def pipeline_seconds(plan: Plan) -> tuple[float, float]:
    """(seconds the slowest stage works on all micro-batches, seconds it idles), before gradients and the update.

    The same at every ZeRO stage that gathers and reduces once a step.
    """
    found = _stages(plan)
    slowest, fill = _slowest(plan, found)
    return plan.micro_batches * found[slowest][0].busy, fill


def _slowest(plan: Plan, stages: list[tuple[StageSeconds, list[tuple[Traffic, float]]]]) -> tuple[int, float]:
    """(the slowest stage, the seconds it idles)."""
    slowest = max(range(len(stages)), key=lambda index: stages[index][0].busy)
    return slowest, idle_seconds(plan, [each for each, _ in stages], slowest)


def _ends_step(row: Traffic) -> bool:
    """Whether a collective runs once a step, after the last micro-batch."""
    return row.when in ONCE


def _tail(rows: list[tuple[Traffic, float]]) -> float:
    return sum(seconds for row, seconds in rows if _ends_step(row))


def _stages(plan: Plan) -> list[tuple[StageSeconds, list[tuple[Traffic, float]]]]:
    """Every stage's times; those of the same layers in the middle are the same, and worked out once."""
    known: dict[tuple[int, int, bool, bool], tuple[StageSeconds, list[tuple[Traffic, float]]]] = {}
    found = []
    for stage in plan.stages:
        kind = (stage.dense_layers, stage.routed_layers, stage.first, stage.last)
        if kind not in known:
            known[kind] = _stage(plan, stage)
        found.append(known[kind])
    return found


def idle_seconds(plan: Plan, stages: list[StageSeconds], slowest: int) -> float:
    """What the slowest stage waits while the pipeline fills and drains; a v-th of it with v equal chunks.

    Breadth-first, too few micro-batches to keep every rank busy leave a gap before each chunk but the first. Where
    weight gradients are put off, the gaps of fill and drain are used for them (Qi et al. 2023, table 1), and in a
    V only half a forward of each other stage is left. Neither ends before a micro-batch has passed every stage both
    ways and the others have followed it; chunks in rounds have as many micro-batches as stages, which hides that.
    """
    if len(stages) == 1:
        return 0.0
    v, m, last = _chunks(plan), plan.micro_batches, stages[slowest]
    if plan.schedule.idles in ("1f1b", "breadth-first"):
        fill = fill_seconds([(each.ahead, each.busy) for each in stages], slowest) / v
        if plan.schedule.idles == "1f1b":
            return fill
        return fill + (v - 1) / v * max(0.0, sum(each.busy for each in stages) - m * last.busy)
    others = [each for index, each in enumerate(stages) if index != slowest]
    if plan.schedule.idles == "zb-h1":
        fill = sum(max(0.0, each.busy - 2 * each.weight_gradients) for each in others) / v
        if v > 1:
            return fill
    else:
        fill = sum(each.ahead for each in others) / 2
    both_ways = [each.busy - each.weight_gradients for each in stages]
    through = sum(both_ways) + (m - 1) * max(both_ways) + last.weight_gradients
    return max(fill, through - m * last.busy)


def _chunks(plan: Plan) -> float:
    """How many of the largest chunk make up the fullest stage: gaps of interleaving are as long as a chunk takes."""
    parallel = plan.parallel
    asked, chunks = parallel.stages, parallel.pipeline * parallel.virtual_stages
    largest = max(asked) if asked is not None else ceil(plan.model.layers / chunks)
    return min(parallel.virtual_stages, max(stage.layers for stage in plan.stages) / largest)


def fill_seconds(stages: list[tuple[float, float]], slowest: int) -> float:
    """Idle seconds of stage `slowest` in a 1F1B step, from each stage's (forward, forward and backward) seconds.

    Before it can start, the stages ahead run one forward, and after its last backward they run one each. The first
    micro-batch's way to the end and back takes longer than the forwards it has to do meanwhile; and at the end its
    backwards come in no faster than a stage behind it alternates. Equal stages: p − 1 micro-batches (F22).
    """
    forward, busy = stages[slowest]
    behind = stages[slowest + 1 :]
    round_trip = max(0.0, sum(each for _, each in behind) - len(behind) * forward)
    alternating = max((each for _, each in behind), default=0.0)
    cool_down = len(behind) * max(0.0, alternating - (busy - forward))
    return sum(each for _, each in stages[:slowest]) + round_trip + cool_down


def _stage(plan: Plan, stage: Stage) -> tuple[StageSeconds, list[tuple[Traffic, float]]]:
    assert plan.device is not None
    forward = backward = recompute = weights = attention = products = 0.0
    for request, count in plan.layers_of(stage):
        each = layer_seconds(request, plan.device)
        forward, backward = forward + count * each.forward, backward + count * each.backward
        recompute, weights = recompute + count * each.recompute, weights + count * each.weight_gradients
        attention, products = attention + count * each.attention, products + count * each.products
    ahead, back = ends_seconds(plan, stage, plan.device)
    bare = StageSeconds(forward + ahead, backward + back, recompute, weights, attention, 0.0, products)
    exposures = exposed(plan, stage, bare)
    inside = sum(s for row, s in exposures if row.when not in ONCE)
    return replace(bare, exposed=inside / plan.micro_batches), exposures


def ends_seconds(plan: Plan, stage: Stage, device: Device) -> tuple[float, float]:
    """Embedding, and final product with the loss: (forward, backward) seconds.

    The head stays in 16 bits where other products take fewer (DeepSeek-AI 2024, section 3.3.1; torchao's float8
    recipes leave it out). A token predicted besides takes a pass through it, and a product that joins the embedding to
    what the model made of the tokens before (DeepSeek-AI 2024, section 2.2).
    """
    forward = backward = 0.0
    if stage.first:
        size = plan.tokens * plan.model.hidden * plan.compute_bytes
        forward, backward = stream_seconds(device, 3 * size), stream_seconds(device, 3 * size)
    if stage.last:
        vocab, hidden = plan.model.vocab / plan.parallel.tensor, plan.model.hidden
        heads, tensor = 1 + stage.predicted, plan.parallel.tensor
        head = heads * matmul_seconds(device, plan.tokens, vocab, hidden, plan.compute_bytes, is_wide=True)
        head += stage.predicted * matmul_seconds(device, plan.tokens, hidden / tensor, 2 * hidden, plan.compute_bytes)
        loss = heads * stream_seconds(device, plan.tokens * vocab * plan.profile.loss_traffic_bytes)
        forward, backward = forward + head + loss / 2, backward + 2 * head + loss / 2
    return forward, backward


def _optimizer_seconds(plan: Plan, memory: StageMemory) -> float:
    """The update streams gradients, weights and state through memory, as often as its kernels do."""
    assert plan.device is not None
    each = 2 * (plan.layout.gradients + plan.optimizer_bytes + plan.layout.parameters)
    return stream_seconds(plan.device, updated_parameters(plan, memory.held) * each * plan.profile.update_passes)
