"""A plan beside the machine at hand: the lab's runs priced by what was measured, and the plan's shape as a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic_core import to_json

from app.theory.planner import Estimate, EstimateRequest, Measured, estimate, outcome, parse_estimate_request
from app.theory.planner.engine.profiles import PROFILES
from app.theory.planner.engine.resolve import micro_batches_of, profile_of
from app.units import scaled
from labs.spec import LAB_MODELS, LARGE_MODELS, MAX_WORLD_SIZE, Model, SpecError, parse_run_spec

RANKS = (1, 2, 4)  # of the lab's runs that are priced
_LABS = "rankzero-labs"
DEGREES = ("tensor", "pipeline", "context", "expert")
MOST_MICRO_BATCHES = 64
NOTABLE = 0.01  # of a part of the memory
MOST_DRY = 1024  # ranks of a dry run
AXES = ("tensor", "pipeline", "data", "expert", "context")  # which a run of few ranks keeps first


@dataclass(frozen=True)
class Priced:
    """A step of one of the lab's runs in seconds: by a data sheet, and by what was measured."""

    name: str
    ranks: int
    by_sheet: float | None
    by_measure: float | None


def lab_runs(measured: Measured, gpu: str) -> tuple[Priced, ...]:
    """The lab's models with its own defaults on a few data ranks, on this machine and on `gpu` as its sheet says."""
    return tuple(
        Priced(name, ranks, _step(name, ranks, {"gpu": gpu}), _step(name, ranks, _alone(measured)))
        for name in LAB_MODELS
        for ranks in RANKS
    )


def _alone(measured: Measured) -> dict[str, Any]:
    return {"gpus_per_node": MAX_WORLD_SIZE, "measured": measured.model_dump(exclude_none=True)}


def _step(name: str, ranks: int, cluster: dict[str, Any]) -> float | None:
    """Seconds of a step; None where what was measured does not tell."""
    spec = parse_run_spec({"model": name, "parallel": {"data": ranks}})
    fields = {"sequence", "micro_batch", "precision", "optimizer", "state_layout"}
    training = {**spec.training.model_dump(include=fields), "global_batch": spec.training.micro_batch * ranks}
    request = {"model": name, "training": training, "parallel": {"data": ranks}, "cluster": cluster}
    try:
        return estimate(parse_estimate_request({**request, "profile": _LABS})).time.step_seconds
    except SpecError:
        return None


def by_sheet(request: EstimateRequest) -> Estimate | None:
    """The plan as it is without what was measured; None where nothing was, or no data sheet is known."""
    cluster = request.cluster
    if cluster is None or cluster.measured is None or cluster.gpu is None:
        return None
    return estimate(request.model_copy(update={"cluster": cluster.model_copy(update={"measured": None})}))


@dataclass(frozen=True)
class Tried:
    """A plan's shape as a RunSpec, and what of the plan it leaves out."""

    spec: Mapping[str, Any]
    leaves_out: tuple[str, ...]

    @property
    def text(self) -> str:
        return to_json(self.spec, indent=2).decode()


def tried_here(request: EstimateRequest) -> Tried:
    """The plan's axes at two ranks each on a model of the lab: as many of them as its ranks and rules allow."""
    parallel, left = request.parallel, list[str]()
    kept: dict[str, int] = {}
    for axis in AXES:
        if getattr(parallel, axis) == 1:
            continue
        if _ranks(kept) * (1 if axis == "expert" else 2) <= MAX_WORLD_SIZE and _runs({**kept, axis: 2}):
            kept[axis] = 2
        else:
            left.append(axis)
    chosen: dict[str, Any] = dict(kept)
    for choice in _besides(request):
        if _runs({**chosen, **choice}):
            chosen |= choice
        else:
            left += _named(choice)
    return Tried(_spec(chosen), tuple(left))


def _besides(request: EstimateRequest) -> Iterator[dict[str, Any]]:
    """What goes with the axes, in what cannot be taken apart."""
    parallel = request.parallel
    if parallel.sequence_parallel:
        yield {"sequence_parallel": True}
    if parallel.zero:
        yield {"zero": parallel.zero}
    if parallel.schedule != "1f1b" or parallel.virtual_stages > 1:
        yield {"schedule": parallel.schedule, "virtual_stages": min(2, parallel.virtual_stages)}


def _named(choice: Mapping[str, Any]) -> list[str]:
    return [f"{name} {value}".replace("_", " ") for name, value in choice.items()]


def _ranks(axes: Mapping[str, int]) -> int:
    found = 1
    for axis, size in axes.items():
        found *= size if axis != "expert" else 1
    return found


def _spec(parallel: Mapping[str, Any]) -> dict[str, Any]:
    model: dict[str, Any] = {"layers": 8, "hidden": 128, "heads": 8, "vocab": 256}
    if "expert" in parallel:
        model |= {"experts": 4, "active_experts": 2}
    training = {"sequence": 64, "micro_batch": 1, "micro_batches": 4, "steps": 20}
    return {"model": model, "training": training, "parallel": dict(parallel)}


def _runs(parallel: Mapping[str, Any]) -> bool:
    try:
        parse_run_spec(_spec(parallel))
    except SpecError:
        return False
    return True


@dataclass(frozen=True)
class Dry(Tried):
    """A plan as a dry run: `held` bytes by the implementation the plan names, and `lab_held` by the lab's own, which is
    what runs dry; `differs` says which parts are others and why."""

    held: float = 0.0
    lab_held: float = 0.0
    differs: tuple[str, ...] = ()


@dataclass(frozen=True)
class NotDry:
    """A plan that the lab cannot take dry, and why."""

    reason: str


def dry(request: EstimateRequest, made: Estimate) -> Dry | NotDry:
    """The plan itself, of which `made` is the estimate, as a dry run with what it leaves out; or why there is none."""
    parallel = request.parallel
    if not isinstance(request.model, Model):
        return NotDry("Of a size alone nothing is known that could run.")
    names = [name for name, model in {**LAB_MODELS, **LARGE_MODELS}.items() if model == request.model]
    model = names[0] if names else request.model.model_dump(exclude_defaults=True)
    if parallel.world_size > MOST_DRY:
        return NotDry(f"The plan has {parallel.world_size:,} ranks; a dry run has {MOST_DRY:,} at most.")
    axes = parallel.model_dump(include={"data", *DEGREES, "sequence_parallel"})
    besides = parallel.model_dump(include={"zero", "schedule", "virtual_stages"})
    fields = {"sequence", "micro_batch", "precision", "state_layout", "recompute"}
    training, left = request.training.model_dump(include=fields), dict[str, Any]()
    micro_batches = micro_batches_of(request)
    training["micro_batches"] = min(MOST_MICRO_BATCHES, micro_batches)
    for _ in range(len(besides) + len(fields)):
        spec = {"model": model, "training": training, "parallel": {**axes, **besides}}
        try:
            parse_run_spec(spec, dry=True)
        except SpecError as error:
            wrong = {each.field.rpartition(".")[2] for each in error.violations}
            if not wrong & (besides.keys() | (training.keys() - {"sequence", "micro_batch", "micro_batches"})):
                return NotDry(" ".join(f"{each.field}: {each.message}" for each in error.violations))
            left |= {name: value for name, value in (besides | training).items() if name in wrong}
            besides, training = ({k: v for k, v in each.items() if k not in wrong} for each in (besides, training))
        else:
            fewer = [f"{micro_batches - MOST_MICRO_BATCHES} of its {micro_batches} micro-batches"]
            return _beside(request, made, spec, (*_named(left), *(fewer if micro_batches > MOST_MICRO_BATCHES else ())))
    return NotDry("Too little of the plan is left that the lab can take.")


def _beside(request: EstimateRequest, made: Estimate, spec: Mapping[str, Any], left: tuple[str, ...]) -> Dry:
    """What the plan holds as its implementation does it, and as the lab does."""
    theirs = made.memory.per_rank_bytes
    ours = outcome(request.model_copy(update={"profile": _LABS})).per_rank_bytes
    parts = [name for name in ("activations", "temporary") if _differ(getattr(theirs, name), getattr(ours, name))]
    said = [f"{name} {_gb(getattr(ours, name))} instead of {_gb(getattr(theirs, name))}" for name in parts]
    return Dry(spec, left, theirs.total, ours.total, (*said, *_why(request)) if said else ())


def _why(request: EstimateRequest) -> Iterator[str]:
    """How the lab's implementation differs from the plan's in what it holds."""
    theirs, ours = PROFILES[profile_of(request)], PROFILES[_LABS]
    if theirs.loss_bytes != ours.loss_bytes:
        then = f" and {ours.loss_backward_bytes:g} more in its backward"
        yield f"its loss holds {ours.loss_bytes:g} bytes a logit{then}, not {theirs.loss_bytes:g} at once"
    if theirs.dropout:
        yield "it keeps no dropout masks"
    if theirs.fused_cores != ours.fused_cores:
        yield "its norms and attention keep only what they were given"


def _differ(one: float | None, other: float | None) -> bool:
    return abs((one or 0.0) - (other or 0.0)) > NOTABLE * max(one or 0.0, other or 0.0)


def _gb(size: float | None) -> str:
    return scaled(size or 0.0, "GB", 3)
