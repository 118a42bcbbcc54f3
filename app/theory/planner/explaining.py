"""Why one plan is faster than another, what one step on each axis would do, and what to work on next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, get_args

from app.theory.planner.engine.profiles import PROFILES
from app.theory.planner.engine.resolve import micro_batches_of, profile_of
from app.theory.planner.estimate import outcome
from app.theory.planner.requests import EstimateRequest, ParameterCount, parse_estimate_request
from app.theory.planner.results import Estimate, Outcome
from app.theory.planner.software import ALL_STAGES, runs, stages_of
from app.theory.records import json_data
from labs.spec import SCHEDULE_RULES, Recompute, SpecError

DEGREES = ("tensor", "context", "pipeline")  # what data parallelism makes room for
NOTABLE = 1e-6  # seconds


@dataclass(frozen=True)
class Term:
    """A part of a step, in seconds, in one plan and in another."""

    name: str
    seconds: float
    other_seconds: float

    @property
    def saved(self) -> float:
        return self.other_seconds - self.seconds


def terms(one: Estimate, other: Estimate, counted: tuple[float, float] = (1.0, 1.0)) -> tuple[Term, ...]:
    """The parts of two steps side by side, what saves most first: they add up to both steps. `counted` is what the
    seconds of each are multiplied by: steps of different batches compare only once they are counted for the same one.
    """
    mine, theirs = _parts(one), _parts(other)
    names = dict.fromkeys([*mine, *theirs])
    found = [Term(name, counted[0] * mine.get(name, 0.0), counted[1] * theirs.get(name, 0.0)) for name in names]
    return tuple(sorted((each for each in found if max(each.seconds, each.other_seconds) > NOTABLE), key=_by_saving))


def _by_saving(term: Term) -> float:
    return -term.saved


def _parts(made: Estimate) -> dict[str, float]:
    """Seconds of a step by what takes them; of communication what nothing hides, by the group that talks."""
    time = made.time
    parts = {
        "compute": time.compute_seconds or 0.0,
        "recompute": time.recompute_seconds or 0.0,
        "bubble": time.bubble_seconds or 0.0,
        "optimizer": time.optimizer_seconds or 0.0,
    }
    for row in made.communication:
        name = f"{row.group} communication"
        parts[name] = parts.get(name, 0.0) + (row.exposed_seconds or 0.0)
    rest = (time.step_seconds or 0.0) - sum(parts.values())
    return {**parts, "waiting for the host": rest} if rest > NOTABLE else parts


def next_bottleneck(made: Estimate) -> str:
    """The largest part of a step that is not the model's own compute."""
    parts = _parts(made)
    del parts["compute"]
    return max(parts, key=lambda name: parts[name])


@dataclass(frozen=True)
class Step:
    """A plan one step away on one axis, `instead` of the value there: what it would take and hold, or why it cannot be.
    `besides` says what has to change with it."""

    axis: str
    value: str
    instead: str
    besides: tuple[str, ...]
    step_seconds: float | None
    memory_bytes: float | None
    fits: bool | None
    why_not: str
    request: EstimateRequest | None

    def to_json(self) -> dict[str, Any]:
        """As JSON data, without the request."""
        return {name: json_data(value) for name, value in vars(self).items() if name != "request"}


def one_step_away(request: EstimateRequest, by_zero: Mapping[int, Outcome] | None = None) -> Iterator[Step]:
    """Every axis halved and doubled, or at its other choices, with the GPUs and the global batch kept. `by_zero` is
    what is known of the plan at other ZeRO stages."""
    data = with_batch(request).model_dump(mode="json", exclude_none=True)
    parallel, training = data["parallel"], data["training"]
    with_experts = data["model"].get("experts", 1) > 1
    for axis, value, changed in (
        *_degrees(parallel, profile_of(request)),
        *_sharing(parallel, with_experts, request.profile),
        *_chunks(parallel, profile_of(request)),
    ):
        known = by_zero.get(value) if by_zero and axis == "zero" else None
        yield _step(request, data, axis, str(value), known, parallel=changed)
    for size in _beside(training["micro_batch"]):
        yield _step(request, data, "micro_batch", str(size), training={"micro_batch": size})
    for choice in get_args(Recompute):
        if choice != training["recompute"]:
            # modules are of selective recomputation, which no other choice is
            yield _step(request, data, "recompute", choice, training={"recompute": choice, "recompute_modules": None})


def with_batch(request: EstimateRequest) -> EstimateRequest:
    """The same plan with its global batch said: one that is left open would follow data parallelism, so that another
    division of the GPUs would do another amount of work."""
    training = request.training
    if training.global_batch is not None or isinstance(request.model, ParameterCount):
        return request
    batch = micro_batches_of(request) * training.micro_batch * request.parallel.data
    return request.model_copy(update={"training": training.model_copy(update={"global_batch": batch})})


Change = tuple[str, int, dict[str, Any]]  # axis, value, and what of `parallel` is then different


def _degrees(parallel: dict[str, Any], profile: str) -> Iterator[Change]:
    """Data parallelism takes what another axis leaves. Stages are for software that has a pipeline."""
    for axis in DEGREES:
        for value in _beside(parallel[axis]):
            if axis == "pipeline" and value > 1 and not runs(profile, parallel["schedule"]):
                continue
            data, rest = divmod(parallel["data"] * parallel[axis], value)
            changed = {axis: value, "data": data}
            if axis == "tensor":
                changed["sequence_parallel"] = value > 1
            if axis == "pipeline" and value == 1:  # nothing to schedule
                changed |= {"schedule": "1f1b", "virtual_stages": 1}
            if not rest:
                yield axis, value, changed


def _sharing(parallel: dict[str, Any], with_experts: bool, profile: str | None) -> Iterator[Change]:
    """Of ZeRO the stages that the plan's software has; where it is left open, any, as the software that has it."""
    stages = ALL_STAGES if profile is None else stages_of(profile)
    for value in _beside(parallel["expert"]) if with_experts else ():
        yield "expert", value, {"expert": value}
    for value in (parallel["zero"] - 1, parallel["zero"] + 1):
        if value in stages:
            yield "zero", value, {"zero": value}


def _chunks(parallel: dict[str, Any], profile: str) -> Iterator[Change]:
    """One chunk a stage more or less, in the same schedule if it takes as many."""
    if parallel["pipeline"] == 1:
        return
    rule = SCHEDULE_RULES[parallel["schedule"]]
    for value in (parallel["virtual_stages"] - 1, parallel["virtual_stages"] + 1):
        if value >= 1:
            keeps = rule.least_virtual_stages <= value <= (rule.most_virtual_stages or value)
            schedule = parallel["schedule"] if keeps else "interleaved" if value > 1 else "1f1b"
            if schedule != parallel["schedule"] and not runs(profile, schedule):
                continue
            yield "virtual_stages", value, {"virtual_stages": value, "schedule": schedule}


def _beside(value: int) -> tuple[int, ...]:
    """Half and double."""
    return (value // 2, value * 2) if value % 2 == 0 else (value * 2,)


def _step(
    now: EstimateRequest,
    data: dict[str, Any],
    axis: str,
    value: str,
    known: Outcome | None = None,
    **changed: dict[str, Any],
) -> Step:
    asked = {**data, **{part: {**data[part], **values} for part, values in changed.items()}}
    instead = str(data["training" if "training" in changed else "parallel"][axis])
    try:
        request = parse_estimate_request(asked)
    except SpecError as error:
        return Step(axis, value, instead, (), None, None, None, str(error.violations[0].message), None)
    then = known or outcome(request)
    besides = tuple(_besides(now, request))
    return Step(axis, value, instead, besides, then.step_seconds, then.per_rank_bytes.total, then.fits, "", request)


def _besides(now: EstimateRequest, then: EstimateRequest) -> Iterator[str]:
    """What one step changes besides its own axis and data parallelism."""
    if now.parallel.sequence_parallel != then.parallel.sequence_parallel:
        yield "with sequence parallel" if then.parallel.sequence_parallel else "without sequence parallel"
    if now.parallel.schedule != then.parallel.schedule:
        yield f"with schedule {then.parallel.schedule}"
    if profile_of(now) != profile_of(then):
        yield f"as {PROFILES[profile_of(then)].title} does it"
