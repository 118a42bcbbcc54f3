"""From the planner's form to estimates, one for each ZeRO stage, through the same engine as the command line."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from time import perf_counter
from typing import Any

from pydantic_core import to_json

from app.core.errors import SpecError, Violation
from app.planner.fields import SIZED
from app.planner.form import Form, read_form
from app.planner.made import Plan, StageBar, capacity_of
from app.planner.rows import search_csv
from app.planner.step import lanes_of
from app.planner.table import estimate_table
from app.theory.planner import (
    Estimate,
    EstimateRequest,
    Flags,
    MemoryBytes,
    Outcome,
    SearchRequest,
    SearchResult,
    StageMemoryEstimate,
    estimate,
    fewest_ranks,
    flags_of,
    front,
    outcome,
    parse_estimate_request,
    parse_search_request,
    search,
)
from app.theory.planner.engine.memory import COMPONENTS
from app.theory.planner.engine.profiles import PROFILES
from app.theory.planner.engine.resolve import profile_of
from app.theory.planner.unmet import unmet
from app.theory.presets import PRESETS
from app.units import count_text

STAGE_LABELS = ("None", "ZeRO-1", "ZeRO-2", "ZeRO-3")


def plan(form: Mapping[str, str]) -> Plan:
    """The plan of a form. What cannot be read or does not go together is replaced, and says so at its place."""
    read = read_form(form)
    zero, data = read.values["zero"], read.request()
    request = parse_estimate_request(data)
    answer = estimate(request)
    memory = answer.memory
    mine = Outcome(answer.time.step_seconds, memory.per_rank_bytes, memory.fits)
    requests = dict(sorted({**dict(_other_stages(read)), zero: request}.items()))
    by_zero = {stage: mine if stage == zero else outcome(each) for stage, each in requests.items()}
    stages = {stage: _bar(each, by_zero[stage], read, answer) for stage, each in requests.items()}
    preset = PRESETS.get(read.values["model"])
    name = preset.title if preset else f"{count_text(read.values['parameters'])} parameters"
    ranks = read.values["ranks"]
    by_stage = answer.memory.by_stage
    return Plan(
        read,
        f"{name} on {ranks:,} {'GPU' if ranks == 1 else 'GPUs'}",
        tuple(stages.values()),
        list(stages).index(zero),
        tuple(_pipeline_bar(each, answer) for each in by_stage) if len(by_stage) > 1 else (),
        lanes_of(answer),
        answer,
        request,
        to_json(data, indent=2).decode(),
        by_zero,
    )


def _other_stages(form: Form) -> Iterator[tuple[int, EstimateRequest]]:
    """The same plan at every other ZeRO stage that goes with it."""
    for stage in range(len(STAGE_LABELS)):
        if stage != form.values["zero"]:
            try:
                yield stage, parse_estimate_request(form.request(stage))
            except SpecError:
                continue


def _bar(request: EstimateRequest, at_stage: Outcome, form: Form, answer: Estimate) -> StageBar:
    zero, fewest = request.parallel.zero, None
    if form.is_own:
        fewest = fewest_ranks(answer.parameters.total, zero, request.training.state_layout, capacity_of(answer))
    held, title = held_of(at_stage.per_rank_bytes), PROFILES[profile_of(request)].title
    return StageBar(STAGE_LABELS[zero], held, bool(at_stage.fits), zero, title, fewest, at_stage.step_seconds)


def _pipeline_bar(stage: StageMemoryEstimate, answer: Estimate) -> StageBar:
    held = held_of(stage.bytes)
    return StageBar(f"Stage {stage.stage}", held, sum(held.values()) <= capacity_of(answer))


def held_of(memory: MemoryBytes) -> dict[str, float]:
    """Bytes by component; what is not estimated takes no room on a bar."""
    return {component: getattr(memory, component) or 0.0 for component in COMPONENTS}


def check_has_shape(made: Plan) -> None:
    """Raises SpecError for a model of which only the size is known."""
    if made.form.is_own:
        message = "Of a model of which only the size is known no plan is known."
        raise SpecError([Violation("model", made.typed["model"], message, ", ".join((*PRESETS, SIZED)))])


def flags(made: Plan) -> tuple[Flags, ...]:
    """The plan as other programs are told it."""
    return flags_of(made.request)


def answer_front(data: object) -> dict[str, object]:
    """Plans that nothing beats in time, memory and GPUs at once, for a SearchRequest. Raises SpecError."""
    return {"front": [point.to_json() for point in front(parse_search_request(data))]}


def answer_search_as_csv(data: object) -> str:
    """The plans of a search as comma-separated values. Raises SpecError."""
    return search_csv(searched(parse_search_request(data, may_be_empty=True))).rstrip()


def searched(request: SearchRequest) -> SearchResult:
    """What a search finds; limits within which nothing fits are refused at their fields. Raises SpecError."""
    found = search(request)
    if not found.best and (violations := unmet(request)):
        raise SpecError(list(violations))
    return found


def answer_search(data: object, now: Callable[[], float] = perf_counter) -> dict[str, object]:
    """The JSON reply to a SearchRequest. Raises SpecError."""
    began = now()
    found = searched(parse_search_request(data, may_be_empty=True)).to_json()
    considered = found.pop("considered")
    return {"considered": considered, "seconds": round(now() - began, 3), **found}


def answer_request(data: object) -> Estimate:
    """The answer to an EstimateRequest from outside. Raises SpecError."""
    return estimate(parse_estimate_request(data))


def answer_request_as_table(data: Any) -> str:
    """The same, to be read on a terminal. Raises SpecError."""
    return estimate_table(answer_request(data))
