"""A plan as the flags of Megatron-LM or the settings of torchtitan, with what they leave open.

Names are those of Megatron-Core's arguments and torchtitan's job configuration in 2025; what a framework has no flag
for is said, not approximated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from app.theory.planner.engine.casting import CASTS
from app.theory.planner.engine.placement import chunk_sizes
from app.theory.planner.engine.resolve import profile_of
from app.theory.planner.fields import PlanParallel, PlanTraining
from app.theory.planner.model_flags import Pairs, megatron_model, torchtitan_model, torchtitan_model_open
from app.theory.planner.requests import EstimateRequest
from app.theory.planner.software import layout_of, runs, said_of
from app.theory.state import LAYOUTS
from labs.spec import Model

TORCHTITAN_SCHEDULES = {
    "gpipe": "GPipe",
    "1f1b": "1F1B",
    "interleaved": "Interleaved1F1B",
    "looped-bfs": "LoopedBFS",
    "zero-bubble": "InterleavedZeroBubble",
    "zbv": "ZBVZeroBubble",
    "dualpipev": "DualPipeV",
}

# Source: torchtitan's torchtitan/config (README.md and configs.py), August 2026.
TORCHTITAN_SINCE = (
    "names since 2026, where a configuration is written in Python: batches are counted in tokens "
    "(num_tokens_per_microbatch_per_dp_rank, num_tokens_per_train_step), a pipeline's micro-batches by "
    "num_pp_microbatches, and async tensor parallelism stands under compile"
)


@dataclass(frozen=True)
class Flags:
    """What to write on the command line of `framework`, and what it does not say."""

    framework: str
    flags: tuple[str, ...]
    leaves_open: tuple[str, ...]

    @property
    def text(self) -> str:
        """A line for each flag, ready for a shell."""
        return " \\\n".join(self.flags)


def chunks_of(model: Model, parallel: PlanParallel) -> tuple[int, ...]:
    """Layers of every chunk in order."""
    return parallel.stages or chunk_sizes(model.layers, parallel.pipeline * parallel.virtual_stages)


def flags_of(request: EstimateRequest) -> tuple[Flags, Flags]:
    """For Megatron-LM and for torchtitan, of a plan whose model has a shape."""
    return _megatron(request), _torchtitan(request)


def _megatron(request: EstimateRequest) -> Flags:
    model, parallel, training = request.model, request.parallel, request.training
    assert isinstance(model, Model), "a size alone has no plan"
    pairs = [
        *megatron_model(model, training.sequence),
        ("--tensor-model-parallel-size", str(parallel.tensor)),
        ("--pipeline-model-parallel-size", str(parallel.pipeline)),
        *((("--context-parallel-size", str(parallel.context)),) if parallel.context > 1 else ()),
        *((("--cp-comm-type", "all_gather"),) if _gathers_keys(parallel) else ()),
        *_megatron_experts(model, parallel),
        *((("--mtp-num-layers", str(training.predicted_tokens)),) if training.predicted_tokens else ()),
        *((("--sequence-parallel", ""),) if parallel.sequence_parallel else ()),
        *_megatron_virtual(model, parallel),
        *((("--use-distributed-optimizer", ""),) if parallel.zero else ()),
        ("--micro-batch-size", str(training.micro_batch)),
        *((("--global-batch-size", str(training.global_batch)),) if training.global_batch else ()),
        ("--seq-length", str(training.sequence)),
        *_megatron_recompute(training),
        *_megatron_overlap(request),
        *_MEGATRON_PRECISION[training.precision],
        *_megatron_gradients(training),
        *((("--use-flash-attn", ""),) if training.attention == "flash" else ()),
    ]
    opened = ["data order, tokenizer, learning rate and checkpoints", "which attention kernel Transformer Engine picks"]
    if not runs("megatron-core", parallel.schedule):
        opened.append(f"the {parallel.schedule} schedule: Megatron-LM runs {said_of('megatron-core')}")
    if parallel.zero >= 2:
        opened.append(f"ZeRO-{parallel.zero}: its distributed optimizer is ZeRO-1, which holds more on each GPU")
    if parallel.shard:
        data_ranks = parallel.data * parallel.context
        opened.append(
            f"shards over {parallel.shard}: --num-distributed-optimizer-instances {data_ranks // parallel.shard}"
        )
    if parallel.stages is None and model.layers % (parallel.pipeline * parallel.virtual_stages):
        opened.append("layers that do not divide evenly: --pipeline-model-parallel-layout says which stage has which")
    if parallel.expert_nodes:
        opened.append(
            f"at most {parallel.expert_nodes} nodes a token: --moe-router-num-groups and --moe-router-group-topk"
        )
    return Flags("Megatron-LM", _joined(pairs), tuple(opened))


BF16_BYTES = 2.0
_BF16 = ("--bf16", "")
_MEGATRON_PRECISION: Mapping[str, tuple[tuple[str, str], ...]] = {
    "fp32": (),
    "bf16": (_BF16,),
    "bf16-mixed": (_BF16,),
    "fp16-mixed": (("--fp16", ""),),
    "fp8-mixed": (("--fp8-format", "hybrid"), _BF16),
    "mxfp8-mixed": (("--fp8-format", "e4m3"), ("--fp8-recipe", "mxfp8"), _BF16),
    "nvfp4-mixed": (("--fp4-format", "e2m1"), ("--fp4-recipe", "nvfp4"), _BF16),
}


def _megatron_gradients(training: PlanTraining) -> Pairs:
    """Megatron keeps and reduces bf16's gradients in fp32 unless told otherwise."""
    if _BF16 in _MEGATRON_PRECISION[training.precision] and LAYOUTS[training.state_layout].gradients <= BF16_BYTES:
        yield "--grad-reduce-in-bf16", ""


def _gathers_keys(parallel: PlanParallel) -> bool:
    return parallel.context > 1 and parallel.context_exchange == "all-gather"


def _megatron_experts(model: Model, parallel: PlanParallel) -> Pairs:
    if parallel.expert > 1:
        yield "--expert-model-parallel-size", str(parallel.expert)
    if model.experts > 1 and parallel.expert_cut < parallel.tensor:
        yield "--expert-tensor-parallel-size", str(parallel.expert_cut)


def _megatron_layout(stages: tuple[int, ...]) -> str:
    """Embedding, decoder layers by chunk, and the loss, as --pipeline-model-parallel-layout spells them."""
    chunks = ["t" * layers for layers in stages]
    return "|".join(["E" + chunks[0], *chunks[1:-1], chunks[-1] + "L"]) if len(chunks) > 1 else f"E{chunks[0]}L"


def _megatron_virtual(model: Model, parallel: PlanParallel) -> Pairs:
    pipeline, virtual = parallel.pipeline, parallel.virtual_stages
    if parallel.stages is not None:
        yield "--pipeline-model-parallel-layout", f'"{_megatron_layout(parallel.stages)}"'
        return
    if pipeline == 1 or virtual == 1:
        return
    if model.layers % (pipeline * virtual) == 0:
        yield "--num-layers-per-virtual-pipeline-stage", str(model.layers // pipeline // virtual)
    else:
        yield "--num-virtual-stages-per-pipeline-rank", str(virtual)
        if model.layers == pipeline * virtual - 2:
            yield "--account-for-embedding-in-pipeline-split", ""
            yield "--account-for-loss-in-pipeline-split", ""


def _megatron_recompute(training: PlanTraining) -> Pairs:
    recompute = training.recompute
    if recompute == "none":
        return
    yield "--recompute-granularity", recompute
    if training.recompute_modules:
        yield "--recompute-modules", " ".join(training.recompute_modules)
    if recompute == "full":
        yield "--recompute-method", "uniform"
        yield "--recompute-num-layers", "1"


def _megatron_overlap(request: EstimateRequest) -> Pairs:
    """What the plan's implementation runs beside compute, unless the plan says otherwise."""
    if profile_of(request) != "megatron-core":
        return
    asked, parallel = request.parallel.overlap, request.parallel
    if parallel.data * parallel.context > 1 and asked.data is not False:
        yield "--overlap-grad-reduce", ""
        if parallel.zero and asked.weights is not False:
            yield "--overlap-param-gather", ""
    if parallel.tensor > 1 and parallel.sequence_parallel and asked.tensor is not False:
        yield "--tp-comm-overlap", ""


def _torchtitan(request: EstimateRequest) -> Flags:
    model, parallel, training = request.model, request.parallel, request.training
    assert isinstance(model, Model), "a size alone has no plan"
    replicas = parallel.data * parallel.context
    shards = (parallel.shard or replicas) if parallel.zero else 1
    inside = max(1, shards // parallel.context) if parallel.zero else 1
    again = False if parallel.zero in (1, 2) else parallel.reshard_after_forward
    modes = {None: "default", True: "always", False: "never"}
    sizes = chunks_of(model, parallel)
    activation = {"none": "none", "selective": "selective", "full": "full"}[training.recompute]
    pairs = [
        *torchtitan_model(model),
        ("--parallelism.data_parallel_replicate_degree", str(parallel.data // inside)),
        ("--parallelism.data_parallel_shard_degree", str(inside)),
        ("--parallelism.fsdp_reshard_after_forward", modes[again]),
        ("--parallelism.tensor_parallel_degree", str(parallel.tensor)),
        *((("--parallelism.enable_async_tensor_parallel", ""),) if parallel.overlap.tensor else ()),
        ("--parallelism.pipeline_parallel_degree", str(parallel.pipeline)),
        *(
            (("--parallelism.pipeline_parallel_schedule", TORCHTITAN_SCHEDULES[parallel.schedule]),)
            if parallel.pipeline > 1
            else ()
        ),
        *_torchtitan_stages(sizes),
        ("--parallelism.context_parallel_degree", str(parallel.context)),
        *_torchtitan_experts(model, parallel),
        ("--training.local_batch_size", str(_local_batch(request))),
        *((("--training.global_batch_size", str(training.global_batch)),) if training.global_batch else ()),
        ("--training.seq_len", str(training.sequence)),
        ("--activation_checkpoint.mode", activation),
        *(
            (("--parallelism.pipeline_parallel_microbatch_size", str(training.micro_batch)),)
            if parallel.pipeline > 1
            else ()
        ),
        *((("--compile.enable", ""),) if training.compile else ()),
    ]
    opened = ["data order, learning rate and checkpoints", TORCHTITAN_SINCE, *torchtitan_model_open(model)]
    if parallel.zero in (1, 2):
        opened.append(f"ZeRO-{parallel.zero}: FSDP2 shards weights too; kept gathered after forward it is about ZeRO-2")
    if not tuple(_torchtitan_stages(sizes)) and len(sizes) > 1:
        layers = ", ".join(map(str, sizes))
        opened.append(f"chunks of {layers} layers: parallelism.module_fqns_per_model_part lists the modules of each")
    if training.precision in CASTS:
        opened.append(f"{training.precision.removesuffix('-mixed')}: the converter and its recipe")
    if training.recompute_modules:
        opened.append("recomputation by module: its selective mode goes by operation")
    own = layout_of("torchtitan", training.precision)
    if training.state_layout != own:
        opened.append(f"state as {training.state_layout}: it keeps {LAYOUTS[own].bytes_each} bytes a parameter")
    if parallel.expert_nodes:
        opened.append("how many nodes a token may reach")
    return Flags("torchtitan", _joined(pairs), tuple(opened))


def _torchtitan_stages(sizes: tuple[int, ...]) -> Pairs:
    """Layers of a chunk, and how many fewer the first and the last one hold, where all between are alike: torchtitan
    counts the ends as so many layers, of which it takes one each unless told otherwise
    (torchtitan/distributed/pipeline_parallel.py)."""
    if len(sizes) == 1:
        return
    most = max(sizes)
    if any(size != most for size in sizes[1:-1]):
        return
    yield "--parallelism.pipeline_parallel_layers_per_stage", str(most)
    yield "--parallelism.pipeline_parallel_first_stage_less_layers", str(most - sizes[0])
    yield "--parallelism.pipeline_parallel_last_stage_less_layers", str(most - sizes[-1])


def _torchtitan_experts(model: Model, parallel: PlanParallel) -> Pairs:
    if parallel.expert > 1:
        yield "--parallelism.expert_parallel_degree", str(parallel.expert)
    if model.experts > 1 and parallel.expert > 1 and parallel.tensor > 1:
        yield "--parallelism.expert_tensor_parallel_degree", str(parallel.expert_cut)


def _local_batch(request: EstimateRequest) -> int:
    """Sequences a data rank takes before an optimizer step: with a pipeline all of them, else one micro-batch."""
    training, parallel = request.training, request.parallel
    if parallel.pipeline == 1 or training.global_batch is None:
        return training.micro_batch
    return training.global_batch // parallel.data


def _joined(pairs: list[tuple[str, str]]) -> tuple[str, ...]:
    return tuple(f"{name} {value}".strip() for name, value in pairs)
