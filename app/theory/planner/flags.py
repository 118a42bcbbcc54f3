"""A plan as other software takes it: the flags of Megatron-LM, a configuration of torchtitan, and what they leave open.

Names are those of Megatron-LM's arguments at d98e8a64dd, 22 August 2026; what a framework has no flag for is said, not
approximated.
"""

from __future__ import annotations

from collections.abc import Mapping

from app.theory.planner.engine.resolve import profile_of
from app.theory.planner.fields import PlanParallel, PlanTraining
from app.theory.planner.model_flags import Flags, Pairs, megatron_model
from app.theory.planner.requests import EstimateRequest
from app.theory.planner.software import runs, said_of
from app.theory.planner.torchtitan import configuration_of
from app.theory.state import LAYOUTS
from labs.spec import Model


def flags_of(request: EstimateRequest) -> tuple[Flags, Flags]:
    """For Megatron-LM and for torchtitan, of a plan whose model has a shape."""
    return _megatron(request), configuration_of(request)


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


def _joined(pairs: list[tuple[str, str]]) -> tuple[str, ...]:
    return tuple(f"{name} {value}".strip() for name, value in pairs)
