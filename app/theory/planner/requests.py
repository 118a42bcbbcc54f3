"""An EstimateRequest from untrusted data: every violated constraint by its field, with the nearest valid values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import gcd
from typing import Annotated, Any, get_args

from pydantic import Field, model_validator

from app.theory.hardware import GPUS, Gpu
from app.theory.planner.attention_kernels import kernels_on
from app.theory.planner.fields import MfuDefinition, PlanParallel, PlanTraining
from app.theory.planner.rules import (
    batch_violations,
    degree_violations,
    order_violations,
    recompute_violations,
    schedule_rules,
    shape_violations,
)
from app.theory.planner.software import Profile, layout_of
from app.theory.presets import PRESETS, model_named
from labs.spec import Compression, Model, Precision, SpecError, Strict, Violation, check_model, parse

Amount = Annotated[float, Field(ge=1, le=1e21)]
Few = Annotated[int, Field(ge=1, le=1_000_000)]


class ParameterCount(Strict):
    """A model of which only its size is known."""

    parameters: Annotated[float, Field(ge=1, le=1e15)]


class Measured(Strict):
    """What a cluster keeps up, as `rankzero measure` prints it: FLOP/s of a large product in `precision` and of causal
    attention forward, bytes a second of a copy read and written, and what a rank sends in a large all-reduce inside a
    node and between nodes."""

    matmul_flops: Amount | None = None
    attention_flops: Amount | None = None
    memory_bytes_per_second: Amount | None = None
    intra_node_bytes_per_second: Amount | None = None
    inter_node_bytes_per_second: Amount | None = None
    precision: Precision | None = None


class Cluster(Strict):
    """Where the plan runs. Overrides are per GPU; bandwidths are one direction.

    A node is what the scale-up link joins, unless `gpus_per_node` is given: 8 GPUs, a rack of 72, or a slice of a TPU
    pod. What is `measured` takes the place of a data sheet's figure and of the share of it that is usually reached; a
    machine without a known GPU has to be measured.
    """

    gpu: str | None = None
    gpus_per_node: Few = 8
    nodes: Few | None = None
    memory_bytes: Amount | None = None
    peak_flops: Amount | None = None
    intra_node_bytes_per_second: Amount | None = None
    inter_node_bytes_per_second: Amount | None = None
    intra_node_latency_seconds: Annotated[float, Field(ge=0, le=10)] | None = None
    inter_node_latency_seconds: Annotated[float, Field(ge=0, le=10)] | None = None
    measured: Measured | None = None

    @model_validator(mode="before")
    @classmethod
    def _fill_what_the_link_joins(cls, data: Any) -> Any:
        gpu = data.get("gpu") if isinstance(data, Mapping) else None
        known = GPUS.get(gpu) if isinstance(gpu, str) else None
        return data if known is None else {"gpus_per_node": known.scale_up_gpus, **data}


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
    try:
        return parse(EstimateRequest, _with_layout(_with_shape(data)), _check)
    except SpecError:
        wrong = _check_form(data["model"])
        if not wrong:
            raise
    try:
        parse(EstimateRequest, _with_layout({**data, "model": _STAND_IN}), _check)
    except SpecError as error:
        raise SpecError(wrong + error.violations) from None
    raise SpecError(wrong)


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


def _with_layout(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """With the state as the plan's software keeps it, unless the plan says how."""
    training, profile = data.get("training", {}), data.get("profile")
    if not isinstance(training, Mapping) or "state_layout" in training or profile not in get_args(Profile):
        return data
    precision = training.get("precision", "bf16-mixed")
    layout = layout_of(profile, precision if precision in get_args(Precision) else "bf16-mixed")
    return {**data, "training": {**training, "state_layout": layout}}


def _check(request: EstimateRequest) -> list[Violation]:
    shape = request.model if isinstance(request.model, Model) else None
    training, parallel = request.training, request.parallel
    found = [] if shape is None else [*check_model(shape), *shape_violations(shape, training, parallel)]
    found += [*degree_violations(parallel, shape), *order_violations(parallel)]
    if request.compression.kind != "none" and parallel.zero:
        message = "Compression hooks replace DDP's all-reduce; ZeRO reduces shards."
        found.append(Violation("compression.kind", request.compression.kind, message, "none, or parallel.zero 0"))
    found += [*recompute_violations(training), *batch_violations(training, parallel)]
    found += schedule_rules(training, parallel)
    if request.cluster is not None:
        found += _check_cluster(request)
    return found


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
    yield from _check_measured(request, cluster)
    if cluster.nodes is not None and cluster.nodes * cluster.gpus_per_node != parallel.world_size:
        yield from _unequal_products(cluster.nodes, cluster.gpus_per_node, parallel)


def _unequal_products(nodes: int, per_node: int, parallel: PlanParallel) -> Iterator[Violation]:
    """Nodes and data ranks that do not make the same number of GPUs: what one would be if the other stays, and where
    neither can, what both would be."""
    gpus, others = nodes * per_node, parallel.world_size // parallel.data
    message = f"{nodes} × {per_node} = {gpus} GPUs, but data × tensor × pipeline × context = {parallel.world_size}."
    whole = per_node // gcd(per_node, others)  # data ranks come in so many to fill nodes
    data = max(1, round(parallel.data / whole)) * whole
    pair = f"{data * others // per_node:,} with parallel.data = {data:,}"
    for_nodes = f"{parallel.world_size // per_node:,}" if parallel.world_size % per_node == 0 else pair
    both = f"{data:,} with cluster.nodes = {data * others // per_node:,}"
    for_data = f"{gpus // others:,}" if gpus % others == 0 else both
    yield Violation("cluster.nodes", nodes, message, for_nodes, ("parallel.data",))
    yield Violation("parallel.data", parallel.data, message, for_data, ("cluster.nodes",))


def _check_measured(request: EstimateRequest, cluster: Cluster) -> Iterator[Violation]:
    """Without a GPU, all that a plan's time depends on is measured."""
    measured, ranks = cluster.measured, request.parallel.world_size
    if measured is None or cluster.gpu is not None:
        gpu = GPUS.get(cluster.gpu or "")
        if gpu is not None and measured is not None and measured.precision is not None:
            yield from _without_peak(gpu, measured.precision)
        return
    needed = ["matmul_flops", "memory_bytes_per_second"]
    if ranks > 1 and cluster.intra_node_bytes_per_second is None:
        needed.append("intra_node_bytes_per_second")
    if ranks > cluster.gpus_per_node and cluster.inter_node_bytes_per_second is None:
        needed.append("inter_node_bytes_per_second")
    for name in needed:
        if getattr(measured, name) is None:
            message = "Without a GPU's data sheet this has to be measured."
            yield Violation(f"cluster.measured.{name}", None, message, "a number, or cluster.gpu", ("cluster.gpu",))


def _without_peak(gpu: Gpu, precision: Precision) -> Iterator[Violation]:
    try:
        gpu.peak(precision)
    except SpecError as error:
        (violation,) = error.violations
        yield Violation("cluster.measured.precision", precision, violation.message, violation.accepted)
