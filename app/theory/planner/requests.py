"""An EstimateRequest from untrusted data: every violated constraint by its field, with the nearest valid values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from app.theory.hardware import GPUS
from app.theory.planner.attention_kernels import kernels_on
from app.theory.planner.fields import MfuDefinition, PlanParallel, PlanTraining
from app.theory.presets import PRESETS, model_named
from labs.spec import (
    Compression,
    Model,
    Parallel,
    ScheduleFields,
    SpecError,
    Strict,
    Violation,
    check_model,
    multiples_near,
    nearest_divisors,
    parse,
    schedule_violations,
    unscheduled_violations,
)

Profile = Literal[
    "zero-paper", "megatron", "megatron-core", "fsdp2", "torchtitan", "composer", "deepspeed", "rankzero-labs"
]
MOST_EXPERTS = 10_000
EMPTY_ENDS = 2  # chunks that hold the table or the head and no layer (Llama team 2024, section 3.3.2)
_FIELDS = ScheduleFields("parallel.schedule", "parallel.pipeline", "parallel.virtual_stages", "training.global_batch")
Amount = Annotated[float, Field(ge=1, le=1e21)]
Few = Annotated[int, Field(ge=1, le=1_000_000)]


class ParameterCount(Strict):
    """A model of which only its size is known."""

    parameters: Annotated[float, Field(ge=1, le=1e15)]


class Cluster(Strict):
    """Where the plan runs. Overrides are per GPU; bandwidths are one direction."""

    gpu: str | None = None
    gpus_per_node: Few = 8
    nodes: Few | None = None
    memory_bytes: Amount | None = None
    peak_flops: Amount | None = None
    intra_node_bytes_per_second: Amount | None = None
    inter_node_bytes_per_second: Amount | None = None
    intra_node_latency_seconds: Annotated[float, Field(ge=0, le=10)] | None = None
    inter_node_latency_seconds: Annotated[float, Field(ge=0, le=10)] | None = None


class EstimateRequest(Strict):
    """A plan to estimate. Read it with `parse_estimate_request`."""

    model: Model | ParameterCount
    training: PlanTraining = PlanTraining()
    parallel: PlanParallel = PlanParallel()
    cluster: Cluster | None = None
    compression: Compression = Compression()
    profile: Profile | None = None
    mfu: MfuDefinition = "attention"


def parse_estimate_request(data: object) -> EstimateRequest:
    """A request from untrusted data. Raises SpecError naming every violated field."""
    if not isinstance(data, Mapping) or "model" not in data:
        return parse(EstimateRequest, data, _check)
    wrong = _check_form(data["model"])
    try:
        request = parse(EstimateRequest, {**data, "model": _STAND_IN} if wrong else _with_shape(data), _check)
    except SpecError as error:
        raise SpecError(wrong + error.violations) from None
    if wrong:
        raise SpecError(wrong)
    return request


# The rest of a request is checked with this where its model cannot be read.
_STAND_IN = {"parameters": 1.0}


def _check_form(model: object) -> list[Violation]:
    """What is wrong with a model, read as what it is meant to be: a name, a size or a shape."""
    if isinstance(model, str):
        known = model_named(model) is not None
        return [] if known else [Violation("model", model, f"{model!r} is no model known here.", ", ".join(PRESETS))]
    if not isinstance(model, Mapping):
        return [Violation("model", model, "This is no model.", "a name, a shape or {parameters: …}")]
    kind: type[Strict] = ParameterCount if "parameters" in model else Model
    try:
        parse(kind, model, lambda _: [])
    except SpecError as error:
        return [Violation(f"model.{v.field}", v.value, v.message, v.accepted) for v in error.violations]
    return []


def _with_shape(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """A model's name replaced by its shape, with the sequence it was trained on unless the plan has another: learned
    positions are part of the count."""
    name = data["model"]
    model = model_named(name) if isinstance(name, str) else None
    if model is None:
        return data
    training = data.get("training", {})
    if name in PRESETS and isinstance(training, Mapping):
        training = {"sequence": PRESETS[name].sequence, **training}
    return {**data, "model": model.model_dump(), "training": training}


def _check(request: EstimateRequest) -> list[Violation]:
    shape = request.model if isinstance(request.model, Model) else None
    found = [] if shape is None else [*check_model(shape), *_check_shape(shape, request)]
    found += _check_degrees(request)
    found += _check_batch(request.training, request.parallel)
    found += _check_schedule(request.training, request.parallel)
    if request.cluster is not None:
        found += _check_cluster(request)
    return found


def _check_shape(model: Model, request: EstimateRequest) -> Iterator[Violation]:
    """What the model's sizes must share out to."""
    parallel, sequence = request.parallel, request.training.sequence
    widths = {"heads": model.heads, "ffn_hidden": model.ffn_hidden}
    if model.expert_ffn_hidden is not None:
        widths["expert_ffn_hidden"] = model.expert_ffn_hidden
    for name, size in widths.items():
        if size % parallel.tensor:
            yield _unequal("parallel.tensor", parallel.tensor, f"model.{name}", size)
    if parallel.sequence_parallel and sequence % (parallel.tensor * parallel.context):
        yield _unequal("parallel.tensor", parallel.tensor, "training.sequence", sequence)
    if sequence % parallel.context:
        yield _unequal("parallel.context", parallel.context, "training.sequence", sequence)
    chunks = parallel.pipeline * parallel.virtual_stages
    if parallel.pipeline > model.layers:
        message = f"There are only {model.layers} layers."
        yield Violation("parallel.pipeline", parallel.pipeline, message, f"1 to {model.layers}", ("model.layers",))
    elif chunks > model.layers + EMPTY_ENDS:
        most = (model.layers + EMPTY_ENDS) // parallel.pipeline
        message = f"{parallel.pipeline} × {parallel.virtual_stages} chunks for {model.layers} layers."
        yield Violation("parallel.virtual_stages", parallel.virtual_stages, message, f"1 to {most}", ("model.layers",))
    if model.experts > MOST_EXPERTS:
        yield Violation("model.experts", model.experts, "No model has as many experts.", f"1 to {MOST_EXPERTS:,}")
    elif model.experts % parallel.expert:
        yield _unequal("parallel.expert", parallel.expert, "model.experts", model.experts)


def _check_degrees(request: EstimateRequest) -> Iterator[Violation]:
    parallel = request.parallel
    for name, part in (("expert", parallel.expert), ("shard", parallel.shard)):
        if part is not None and parallel.data % part:
            yield _unequal(f"parallel.{name}", part, "parallel.data", parallel.data)
    if request.compression.kind != "none" and parallel.zero:
        message = "Compression hooks replace DDP's all-reduce; ZeRO reduces shards."
        yield Violation("compression.kind", request.compression.kind, message, "none, or parallel.zero 0")


def _check_schedule(training: PlanTraining, parallel: Parallel) -> Iterator[Violation]:
    """What the pipeline's schedule takes, where the global batch shares out to whole micro-batches."""
    if parallel.pipeline == 1:
        yield from unscheduled_violations(parallel.schedule, parallel.virtual_stages, _FIELDS)
        return
    batch, each = training.global_batch, training.micro_batch * parallel.data
    micro_batches = None if batch is None or batch % each else batch // each
    yield from schedule_violations(
        parallel.schedule, parallel.pipeline, micro_batches, parallel.virtual_stages, _FIELDS, each
    )


def _check_batch(training: PlanTraining, parallel: Parallel) -> Iterator[Violation]:
    """Every data-parallel rank takes the same whole number of micro-batches."""
    batch, each = training.global_batch, training.micro_batch * parallel.data
    if batch is not None and batch % each:
        message = (
            f"{batch:,} sequences are no multiple of micro_batch × data = {training.micro_batch:,} × {parallel.data:,}."
        )
        involves = ("training.micro_batch", "parallel.data")
        yield Violation("training.global_batch", batch, message, multiples_near(batch, each), involves)


def _check_cluster(request: EstimateRequest) -> Iterator[Violation]:
    cluster, parallel = request.cluster, request.parallel
    assert cluster is not None
    if cluster.gpu is not None and cluster.gpu not in GPUS:
        yield Violation("cluster.gpu", cluster.gpu, f"{cluster.gpu!r} is not known.", ", ".join(GPUS))
    elif cluster.gpu is not None and cluster.peak_flops is None:
        try:
            GPUS[cluster.gpu].peak(request.training.precision)
        except SpecError as error:
            (violation,) = error.violations
            yield Violation(f"training.{violation.field}", violation.value, violation.message, violation.accepted)
    gpu, kernel = GPUS.get(cluster.gpu or ""), request.training.attention_kernel
    if gpu is not None and kernel != "auto" and kernel not in kernels_on(gpu.generation):
        accepted = ", ".join(("auto", *kernels_on(gpu.generation)))
        message = f"There is no published rate of {kernel} on {gpu.title}."
        yield Violation("training.attention_kernel", kernel, message, accepted, ("cluster.gpu",))
    if cluster.nodes is not None and cluster.nodes * cluster.gpus_per_node != parallel.world_size:
        gpus = cluster.nodes * cluster.gpus_per_node
        product = f"data × tensor × pipeline × context = {parallel.world_size}"
        message = f"{cluster.nodes} × {cluster.gpus_per_node} = {gpus} GPUs, but {product}."
        for field, value in (("cluster.nodes", cluster.nodes), ("parallel.data", parallel.data)):
            yield Violation(field, value, message, "equal products")


def _unequal(field: str, value: int, whole_field: str, whole: int) -> Violation:
    """`whole` does not split into `value` equal parts; names the divisors nearest to it."""
    message = f"{value:,} does not divide {whole_field.partition('.')[2]} = {whole:,}."
    return Violation(field, value, message, nearest_divisors(whole, value), (whole_field,))
