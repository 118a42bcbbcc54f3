"""What an estimate assumes and warns of, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from app.theory.hardware import GPUS
from app.theory.planner.attention_kernels import KERNELS
from app.theory.planner.engine.casting import CASTS
from app.theory.planner.engine.memory import StageMemory
from app.theory.planner.engine.plan import Plan
from app.theory.planner.engine.profiles import PROFILES
from app.theory.planner.requests import EstimateRequest
from app.theory.planner.software import DEFAULTS, runs, said_of, stages_of
from app.theory.state import LAYOUTS

OVERRIDES = ("peak_flops", "intra_node_bytes_per_second", "inter_node_bytes_per_second")
MFU_COUNTS = {
    "6n": "six FLOPs for each parameter a token meets, and no attention",
    "attention": "attention over the whole sequence",
    "causal-attention": "the half of attention that a causal mask leaves",
}
BESIDE = {
    "data": "gradients",
    "weights": "updated or gathered weights",
    "tensor": "tensor-parallel collectives in chunks",
    "pipeline": "sends between stages",
    "expert": "tokens to experts",
}
WASTEFUL = 0.2  # of a step, idle
PRECISION_BYTES: Mapping[str, float] = {"fp32": 4.0, "bf16": 2.0}  # of weights, where the layout has to agree
TIGHT = 0.9  # of the capacity: context, communication buffers and fragments take the rest


SELECTIVE = {
    "attention": "attention's scores",
    "every-other-matmul": "every other matrix product, norms and elementwise work",
}


def repeats(profile: str, modules: Sequence[str] | None) -> str:
    """What selective recomputation repeats: two implementations mean two things by the word, and modules a third."""
    return SELECTIVE[PROFILES[profile].selective] if modules is None else ", ".join(modules) or "nothing"


def reduced_otherwise(plan: Plan) -> str:
    """In which type an implementation reduces gradients that its layout keeps in another."""
    sent, kept = plan.profile.reduce_bytes, plan.layout.gradients
    return f"Gradients are sent in {sent:g} bytes each, as {plan.profile.title} reduces them, and kept in {kept:g}."


def state_assumptions(request: EstimateRequest, shards: int, profile: str) -> list[str]:
    """For a model that is only a number of parameters."""
    said = [
        *_common(request, shards),
        "Model state only: activations, temporary buffers, communication and time are not estimated and are null.",
        f"Profile {profile}.",
    ]
    if request.parallel.tensor * request.parallel.pipeline > 1:
        said.append("Parameters divide evenly over tensor × pipeline ranks (F27).")
    return said


def assumptions(request: EstimateRequest, plan: Plan) -> list[str]:
    """For a model with a shape."""
    parallel, training, profile = plan.parallel, plan.training, plan.profile
    said = [*_common(request, plan.shards), f"Profile {profile.name}: {profile.title} ({profile.source})."]
    if request.profile is None:
        among = " and ".join(DEFAULTS)
        said.append(f"The profile was chosen from the plan: the first of {among} that has its ZeRO stage.")
    if request.training.global_batch is None:
        said.append(f"No global batch given: {plan.micro_batches} micro-batches per step and data rank.")
    if parallel.context > 1 and parallel.shard is None and parallel.zero:
        said.append("ZeRO shards over data × context ranks, which all hold the same weights.")
    if parallel.pipeline > 1:
        fewest, most = (f(stage.layers for stage in plan.stages) for f in (min, max))
        why = "as asked" if parallel.stages else "they do not divide evenly, and the ends are the lighter ones"
        uneven = f"{fewest} to {most} layers: {why}"
        said.append(f"Stages hold {f'{most} layers each' if fewest == most else uneven}.")
    said += _choices(plan)
    if training.optimizer != "adamw":
        said.append(f"{training.optimizer} keeps {plan.optimizer_bytes:g} bytes a parameter in place of the layout's.")
    if plan.device is None:
        cluster = request.cluster
        ignored = [] if cluster is None else [name for name in OVERRIDES if getattr(cluster, name) is not None]
        without = f"; {', '.join(ignored)} are not used" if ignored else ""
        said.append(f"No GPU given: nothing is timed{without}.")
    else:
        said.append(f"MFU counts {MFU_COUNTS[request.mfu]}; a fused kernel computes the causal half.")
        said += _how(request, plan)
    if plan.compression.kind != "none":
        said.append(f"Gradients are compressed ({plan.compression.kind}); compressing them takes no time here.")
    if training.precision in CASTS:
        said.append(
            f"Matrix products but the head's run in {training.precision.removesuffix('-mixed')}; what is kept and "
            f"reduced stays 16-bit, and every product casts its factors ({CASTS[training.precision].source})."
        )
    return said


def _choices(plan: Plan) -> list[str]:
    """What is recomputed, where experts are, and how context ranks and tokens predicted besides are counted."""
    parallel, training, profile, said = plan.parallel, plan.training, plan.profile, []
    if training.recompute == "selective":
        said.append(f"Selective recomputation repeats {repeats(profile.name, training.recompute_modules)}.")
    if profile.reduce_bytes is not None and profile.reduce_bytes != plan.layout.gradients:
        said.append(reduced_otherwise(plan))
    if plan.model.experts > 1:
        said.append("Experts get equal shares of the tokens.")
        if parallel.expert_cut < parallel.tensor:
            cut = "each is whole" if parallel.expert_cut == 1 else f"each is cut over {parallel.expert_cut}"
            said.append(f"Experts are dealt over data × tensor ranks, {cut} (MoE parallel folding).")
    if training.predicted_tokens:
        said.append("Tokens predicted besides the next cost a layer and a head each, and are no part of the model.")
    if parallel.context > 1 and parallel.context_exchange == "all-gather":
        said.append("Context ranks gather keys and values before attention, which nothing hides.")
    return said


def _how(request: EstimateRequest, plan: Plan) -> list[str]:
    """By which kernel attention runs, and what runs beside compute."""
    said, gpu = [], GPUS.get((request.cluster.gpu if request.cluster else None) or "")
    if plan.training.attention == "flash" and plan.attention_kernel is not None and gpu is not None:
        source = KERNELS[plan.attention_kernel, gpu.generation].source
        said.append(f"Attention runs at the rate of {plan.attention_kernel} ({source}).")
    if request.cluster is not None and request.cluster.measured is not None:
        measured = request.cluster.measured.model_dump(exclude_none=True, exclude={"precision"})
        said.append(f"As measured on this cluster: {', '.join(measured).replace('_', ' ')}.")
    chosen = {name: getattr(plan.overlap, name) for name in BESIDE}
    hidden = [what for name, what in BESIDE.items() if chosen[name]]
    said.append(f"Beside compute run {', '.join(hidden)}." if hidden else "No collective runs beside compute.")
    return said


def _common(request: EstimateRequest, shards: int) -> list[str]:
    layout, cluster = LAYOUTS[request.training.state_layout], request.cluster
    each = f"{layout.parameters:g} + {layout.gradients:g} + {layout.optimizer:g}"
    said = [
        f"State layout {layout.name}: {each} bytes a parameter.",
        f"ZeRO stage {request.parallel.zero} over {shards} data-parallel ranks (F02).",
    ]
    if cluster is not None and cluster.memory_bytes is None and cluster.gpu:
        said.append("Capacity is what the driver reports, in GiB; interview arithmetic uses the size on the box.")
    return said


def _priced_as_if(plan: Plan) -> Iterator[str]:
    """What its software does not have, and is priced all the same."""
    parallel, software = plan.parallel, plan.profile.title
    if parallel.pipeline > 1 and not runs(plan.profile_name, parallel.schedule):
        yield f"{software} runs {said_of(plan.profile_name)}: {parallel.schedule} is priced as if it did."
    if parallel.zero not in (stages := stages_of(plan.profile_name)):
        most = max(stages)
        yield f"{software} has ZeRO-{most} at most: ZeRO-{parallel.zero} is priced as if it had it; its runs hold more."


def warnings(
    request: EstimateRequest, plan: Plan, worst: StageMemory, capacity: float | None, bubble: float
) -> list[str]:
    """What a plan should be changed or checked for."""
    parallel, training, found = plan.parallel, plan.training, []
    if capacity is not None and worst.total > capacity:
        found.append(f"Does not fit: stage {worst.stage.index} needs {worst.total / capacity:.2f} times the memory.")
    elif capacity is not None and worst.total > TIGHT * capacity:
        found.append("Over 90 % of the memory: context, communication buffers and fragments may not fit beside it.")
    nodes = plan.ranks("tensor").nodes
    if parallel.has_own_order and nodes > 1:
        found.append(f"In this order of the axes tensor parallelism {parallel.tensor} reaches over {nodes} nodes.")
    elif parallel.tensor > plan.network.gpus_per_node:
        found.append(f"Tensor parallelism {parallel.tensor} leaves the node of {plan.network.gpus_per_node} GPUs.")
    elif parallel.tensor > 1 and plan.network.gpus_per_node % parallel.tensor:
        found.append(f"Tensor groups of {parallel.tensor} do not divide a node of {plan.network.gpus_per_node} GPUs.")
    found += _priced_as_if(plan)
    if bubble > WASTEFUL:
        found.append(
            f"{plan.micro_batches} micro-batches for {parallel.pipeline} stages: on the mean of the stages "
            f"{100 * bubble:.0f} % of the pipeline's time is idle."
        )
    if parallel.shard is not None and parallel.zero == 0:
        found.append("shard does nothing without a ZeRO stage.")
    if PRECISION_BYTES.get(training.precision, plan.layout.parameters) != plan.layout.parameters:
        found.append(
            f"Layout {plan.layout.name} keeps weights of {plan.layout.parameters:g} bytes under {training.precision}."
        )
    if parallel.zero >= 2 and parallel.pipeline > 1:
        found.append("Under ZeRO-2 and 3 every micro-batch of the pipeline reduces gradients again.")
    if training.offload != "none":
        found.append("Offload is timed with a typical host: its links and memory differ between machines.")
    if request.cluster is not None and request.cluster.gpu and plan.profile_name == "rankzero-labs":
        found.append(
            f"This lab's profile on {GPUS[request.cluster.gpu].title} has not been compared with a measurement."
        )
    return found
