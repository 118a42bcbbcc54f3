"""The planner's page and the estimate call."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, get_args
from urllib.parse import urlencode

from fastapi import APIRouter, Body, Request
from fastapi.responses import HTMLResponse

from app.core.charts import Scale
from app.core.errors import SpecError
from app.core.templating import page
from app.planner import finding, service
from app.planner.fields import OWN
from app.planner.step import step_scale
from app.theory import state
from app.theory.hardware import GPUS, Gpu
from app.theory.planner import Profile
from app.theory.planner.space import GATHERS, KEEPS
from app.theory.presets import PRESETS, Preset
from labs.spec import Precision, Recompute, Schedule, StateLayout

router = APIRouter()
api = APIRouter(prefix="/api/v1", tags=["planner"])


@dataclass(frozen=True)
class PlannerPage:
    """What the planner's template shows: the plan, what can be chosen, and what a search of its GPUs found best."""

    plan: service.Plan
    said: str
    families: Mapping[str, Sequence[Preset]]
    layouts: Sequence[state.StateLayout]
    makers: Mapping[str, Sequence[Gpu]]
    gpu: Gpu
    preset: Preset | None
    time_scale: Scale
    best: finding.Choice | None
    problem: str
    find: str
    estimate_json: str
    precisions: tuple[str, ...] = get_args(Precision)
    recomputes: tuple[str, ...] = get_args(Recompute)
    schedules: tuple[str, ...] = get_args(Schedule)
    profiles: tuple[str, ...] = get_args(Profile)
    reshards: tuple[str, ...] = (GATHERS, KEEPS)
    own: str = OWN


@router.get("/planner", response_class=HTMLResponse)
def planner(request: Request) -> HTMLResponse:
    """The plan lives in the address: it can be reloaded, sent and gone back to."""
    plan = service.plan(request.query_params)
    choice, problem = None, ""
    if "find" in request.query_params and not plan.form.is_own:
        try:
            choice = finding.choose(plan)
        except SpecError as error:
            problem = str(error.violations[0].message)
    shown = PlannerPage(
        plan=plan,
        said=service.finding(plan),
        families=service.grouped(PRESETS.values(), lambda preset: preset.family),
        layouts=[state.LAYOUTS[name] for name in get_args(StateLayout)],
        makers=service.grouped(GPUS.values(), lambda gpu: gpu.maker),
        gpu=GPUS[plan.form.values["gpu"]],
        preset=PRESETS.get(plan.form.values["model"]),
        time_scale=step_scale(plan.lanes),
        best=choice,
        problem=problem,
        find="/planner?" + urlencode({**plan.typed, "find": "1"}) + "#p-find",
        estimate_json=json.dumps(plan.estimate.to_json(), indent=2),
    )
    return page(request, "planner/planner.html", {"shown": shown})


@api.post("/estimate")
def estimate(plan: Annotated[dict[str, Any], Body()]) -> dict[str, Any]:
    """An EstimateRequest answered; every violated constraint is named with its field."""
    return service.answer_request(plan).to_json()


@api.post("/search")
def find_best(request: Annotated[dict[str, Any], Body()]) -> dict[str, Any]:
    """A SearchRequest answered: the configurations that fit, the best first; violated constraints are named."""
    return service.answer_search(request)
