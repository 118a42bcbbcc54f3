"""What a plan's numbers must keep to between them: what divides what, and which choices go together. Every broken rule
names its field and the nearest values that keep it."""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd

from app.theory.mesh import AXES
from app.theory.planner.fields import PlanParallel, PlanTraining
from app.theory.transformer import expert_width
from labs.spec import (
    SCHEDULE_RULES,
    Model,
    Parallel,
    ScheduleFields,
    Violation,
    multiples_near,
    nearest_divisors,
    schedule_violations,
    unscheduled_violations,
)

MOST_EXPERTS = 10_000
EMPTY_ENDS = 2  # chunks that hold the table or the head and no layer (Llama team 2024, section 3.3.2)
_FIELDS = ScheduleFields("parallel.schedule", "parallel.pipeline", "parallel.virtual_stages", "training.global_batch")


def shape_violations(model: Model, training: PlanTraining, parallel: PlanParallel) -> Iterator[Violation]:
    """What the model's sizes must share out to."""
    sequence = training.sequence
    widths = {"heads": model.heads, "ffn_hidden": model.ffn_hidden}
    if model.shared_experts and model.expert_ffn_hidden is not None:
        widths["expert_ffn_hidden"] = model.expert_ffn_hidden
    tensor, context = parallel.tensor, parallel.context
    of_rank = sequence // context if sequence % context == 0 else sequence  # tokens; else context is what is wrong
    whole = gcd(*widths.values(), *((of_rank,) if parallel.sequence_parallel else ()))
    for name, size in widths.items():
        if size % tensor:
            yield _unequal("parallel.tensor", tensor, f"model.{name}", size, whole)
    if parallel.sequence_parallel and of_rank % tensor:
        yield _unequal("parallel.tensor", tensor, "training.sequence", sequence, whole)
    if sequence % context:
        divides = parallel.sequence_parallel and sequence % tensor == 0
        yield _unequal(
            "parallel.context", context, "training.sequence", sequence, sequence // tensor if divides else sequence
        )
    chunks = parallel.pipeline * parallel.virtual_stages
    if parallel.pipeline > model.layers:
        message = f"There are only {model.layers} layers."
        yield Violation("parallel.pipeline", parallel.pipeline, message, f"1 to {model.layers}", ("model.layers",))
    elif chunks > model.layers + EMPTY_ENDS:
        most = (model.layers + EMPTY_ENDS) // parallel.pipeline
        message = f"{parallel.pipeline} × {parallel.virtual_stages} chunks for {model.layers} layers."
        yield Violation("parallel.virtual_stages", parallel.virtual_stages, message, f"1 to {most}", ("model.layers",))
    elif parallel.stages is not None:
        yield from _stages(model, parallel, parallel.stages)
    yield from _experts(model, parallel)
    if model.latent_attention is None and "mla_up_proj" in (training.recompute_modules or ()):
        message = "Only latent attention projects up."
        involves = ("model.latent_attention",)
        yield Violation("training.recompute_modules", training.recompute_modules, message, "the others", involves)


def _stages(model: Model, parallel: PlanParallel, stages: tuple[int, ...]) -> Iterator[Violation]:
    """A number for every chunk, which add up to the layers; only the ends may hold none."""
    chunks = parallel.pipeline * parallel.virtual_stages
    field, given = "parallel.stages", list(stages)
    even = f"{chunks} numbers that add up to {model.layers}, such as about {model.layers / chunks:.3g} each"
    if len(stages) != chunks:
        message = f"{len(stages)} numbers for {parallel.pipeline} × {parallel.virtual_stages} = {chunks} chunks."
        yield Violation(field, given, message, even, ("parallel.pipeline", "parallel.virtual_stages"))
    elif sum(stages) != model.layers:
        yield Violation(field, given, f"They add up to {sum(stages)} layers.", even, ("model.layers",))
    elif 0 in stages[1:-1]:
        at = stages.index(0, 1) + 1
        message = f"Chunk {at} of {chunks} holds nothing: only the first and the last have a table or a head to hold."
        yield Violation(field, given, message, "1 or more between the ends")


def _experts(model: Model, parallel: PlanParallel) -> Iterator[Violation]:
    expert, cut, tensor = parallel.expert, parallel.expert_tensor, parallel.tensor
    if model.experts > MOST_EXPERTS:
        yield Violation("model.experts", model.experts, "No model has as many experts.", f"1 to {MOST_EXPERTS:,}")
    elif model.experts % expert:
        yield _unequal("parallel.expert", expert, "model.experts", model.experts, expert_ranks(parallel, model.experts))
    if model.experts == 1 and cut is not None:
        message = "Only a model with more than one expert has this."
        yield Violation("parallel.expert_tensor", cut, message, "null", ("model.experts",))
    if model.experts > 1 and tensor % parallel.expert_cut == 0:
        if expert_width(model) % parallel.expert_cut:
            of = "model.expert_ffn_hidden" if model.expert_ffn_hidden else "model.ffn_hidden"
            width = expert_width(model)
            yield _unequal("parallel.expert_tensor", parallel.expert_cut, of, width, gcd(width, tensor))
        if parallel.expert_cut < tensor and not parallel.sequence_parallel:
            message = "Tensor ranks that share out experts each send tokens of their own."
            accepted = "true, or parallel.expert_tensor as large as parallel.tensor"
            involves = ("parallel.expert", "parallel.expert_tensor")
            yield Violation("parallel.sequence_parallel", False, message, accepted, involves)


def expert_ranks(parallel: PlanParallel, experts: int) -> int:
    """What expert ranks must divide: the experts, and the ranks there are for them."""
    ranks, cut = parallel.data * parallel.tensor, parallel.expert_tensor or 1
    return gcd(experts, ranks // cut if ranks % cut == 0 else ranks)


def degree_violations(parallel: PlanParallel, model: Model | None) -> Iterator[Violation]:
    """What the axes must divide; of a `model` the values offered divide its experts as well."""
    if parallel.shard is not None and parallel.data % parallel.shard:
        yield _unequal("parallel.shard", parallel.shard, "parallel.data", parallel.data)
    cut = None if model is not None and model.experts == 1 else parallel.expert_tensor
    if cut is not None and parallel.tensor % cut:
        whole = gcd(parallel.tensor, expert_width(model)) if model and model.experts > 1 else parallel.tensor
        yield _unequal("parallel.expert_tensor", cut, "parallel.tensor", parallel.tensor, whole)
        return
    whole = parallel.data * parallel.tensor
    if whole % (parallel.expert * (cut or 1)):
        left = expert_ranks(parallel, model.experts) if model else whole // (cut or 1)
        message = f"{parallel.expert:,} does not divide data × tensor = {parallel.data:,} × {parallel.tensor:,}"
        message += f" over expert_tensor = {cut:,}." if cut else "."
        involves = ("parallel.data", "parallel.tensor", "parallel.expert_tensor")
        yield Violation("parallel.expert", parallel.expert, message, nearest_divisors(left, parallel.expert), involves)


def order_violations(parallel: PlanParallel) -> Iterator[Violation]:
    """An order of the axes names each once. Where experts or shards of a part of the ranks lie is known in the usual
    one alone."""
    order = parallel.order
    if order is None:
        return
    if len(set(order)) < len(AXES):
        missing = ", ".join(axis for axis in AXES if axis not in order)
        yield Violation("parallel.order", list(order), f"{missing} has no place.", f"each of {', '.join(AXES)} once")
    for name, is_used in (("expert", parallel.expert > 1), ("shard", parallel.shard is not None)):
        if is_used and parallel.has_own_order:
            message = f"With parallel.{name} only the usual order is computed."
            yield Violation("parallel.order", list(order), message, ", ".join(AXES), (f"parallel.{name}",))


def recompute_violations(training: PlanTraining) -> Iterator[Violation]:
    """Modules are what selective recomputation repeats."""
    modules = training.recompute_modules
    if modules is None:
        return
    if training.recompute != "selective":
        message = f"These are for selective recomputation, not {training.recompute}."
        yield Violation("training.recompute_modules", list(modules), message, "null", ("training.recompute",))
    if len(set(modules)) < len(modules):
        yield Violation("training.recompute_modules", list(modules), "A module is named twice.", "each once")


def schedule_rules(training: PlanTraining, parallel: Parallel) -> Iterator[Violation]:
    """What the pipeline's schedule takes, where the global batch shares out to whole micro-batches."""
    if parallel.pipeline == 1:
        yield from unscheduled_violations(parallel.schedule, parallel.virtual_stages, _FIELDS)
        return
    batch, each = training.global_batch, training.micro_batch * parallel.data
    micro_batches = None if batch is None or batch % each else batch // each
    yield from schedule_violations(
        parallel.schedule, parallel.pipeline, micro_batches, parallel.virtual_stages, _FIELDS, each
    )


def batch_violations(training: PlanTraining, parallel: Parallel) -> Iterator[Violation]:
    """Every data-parallel rank takes the same whole number of micro-batches."""
    batch, each = training.global_batch, training.micro_batch * parallel.data
    if batch is not None and batch % each:
        message = (
            f"{batch:,} sequences are no multiple of micro_batch × data = {training.micro_batch:,} × {parallel.data:,}."
        )
        involves = ("training.micro_batch", "parallel.data")
        least, unit = batch_rule(training.micro_batch, parallel)
        yield Violation("training.global_batch", batch, message, multiples_near(max(batch, least), unit), involves)


def batch_rule(micro_batch: int, parallel: Parallel) -> tuple[int, int]:
    """(the least, what it is a multiple of) of a global batch that data ranks, micro-batches and the pipeline's
    schedule share out."""
    each, stages = micro_batch * parallel.data, parallel.pipeline
    if stages == 1:
        return each, each
    rule = SCHEDULE_RULES[parallel.schedule]
    unit = each * rule.micro_batches_come_in(stages, parallel.virtual_stages)
    return -(-each * rule.least_micro_batches(stages) // unit) * unit, unit


def _unequal(field: str, value: int, whole_field: str, size: int, whole: int | None = None) -> Violation:
    """`size` does not split into `value` equal parts; names the values nearest to it that keep to every rule of the
    field, the divisors of `whole`."""
    message = f"{value:,} does not divide {whole_field.partition('.')[2]} = {size:,}."
    return Violation(field, value, message, nearest_divisors(whole or size, value), (whole_field,))
