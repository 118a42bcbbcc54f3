"""The planner's page and the estimate call."""

from __future__ import annotations

import json
from typing import Annotated, Any, get_args
from urllib.parse import urlencode

from fastapi import APIRouter, Body, Request
from fastapi.responses import HTMLResponse

from app.core.errors import SpecError
from app.core.templating import page
from app.planner import service
from app.planner.fields import OWN
from app.planner.step import step_scale
from app.theory.hardware import GPUS
from app.theory.presets import PRESETS
from app.theory.state import LAYOUTS
from labs.spec import Precision, Recompute, Schedule, StateLayout

router = APIRouter()
api = APIRouter(prefix="/api/v1", tags=["planner"])


@router.get("/planner", response_class=HTMLResponse)
def planner(request: Request) -> HTMLResponse:
    """The plan lives in the address: it can be reloaded, sent and gone back to."""
    plan = service.plan(request.query_params)
    choice, problem = None, ""
    if "find" in request.query_params and not plan.form.is_own:
        try:
            choice = service.choose(plan)
        except SpecError as error:
            problem = str(error.violations[0].message)
    context = {
        "plan": plan,
        "finding": service.finding(plan),
        "families": service.grouped(PRESETS.values(), lambda preset: preset.family),
        "layouts": [LAYOUTS[name] for name in get_args(StateLayout)],
        "makers": service.grouped(GPUS.values(), lambda gpu: gpu.maker),
        "precisions": get_args(Precision),
        "recomputes": get_args(Recompute),
        "schedules": get_args(Schedule),
        "gpu": GPUS[plan.form.values["gpu"]],
        "own": OWN,
        "preset": PRESETS.get(plan.form.values["model"]),
        "time_scale": step_scale(plan.lanes),
        "best": choice,
        "problem": problem,
        "find": "/planner?" + urlencode({**plan.typed, "find": "1"}) + "#p-find",
        "estimate_json": json.dumps(plan.estimate.to_json(), indent=2),
    }
    return page(request, "planner/planner.html", context)


@api.post("/estimate")
def estimate(plan: Annotated[dict[str, Any], Body()]) -> dict[str, Any]:
    """An EstimateRequest answered; every violated constraint is named with its field."""
    return service.answer_request(plan).to_json()


@api.post("/search")
def find_best(request: Annotated[dict[str, Any], Body()]) -> dict[str, Any]:
    """A SearchRequest answered: the configurations that fit, the best first; violated constraints are named."""
    return service.answer_search(request)
