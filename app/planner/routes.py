"""The planner's page and the estimate call."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Body, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from pydantic_core import to_json

from app.core.charts import Scale
from app.core.errors import SpecError
from app.core.options import Options
from app.core.templating import page, wants_fragment
from app.planner import (
    beside,
    cluster,
    comparing,
    counted,
    deciding,
    finding,
    frontier,
    here,
    limits,
    offering,
    parts,
    saying,
    service,
    textbook,
    training,
)
from app.planner.fields import ANY, DEFAULTS, SEARCH, SIZED, query_text
from app.planner.labels import LABELS
from app.planner.lists import LISTS
from app.planner.made import Plan
from app.planner.mending import model_of, sequence_of
from app.planner.step import step_scale
from app.theory.hardware import GPUS, Gpu
from app.theory.planner import Estimate
from app.theory.planner.groups import LaidCluster
from app.units import bytes_text, scaled
from labs.spec import Model

router = APIRouter()
router.include_router(parts.router)
api = APIRouter(prefix="/api/v1", tags=["planner"])
LAST_PLAN = "planner_last"  # a cookie: the address of the plan looked at last
LONGEST_KEPT = 3_000  # characters: browsers drop a cookie of more than 4,096 bytes
A_YEAR = 365 * 24 * 60 * 60  # seconds


@dataclass(frozen=True)
class PlannerPage:
    """What the planner's template shows: the plan, what can be chosen, and what a search of its GPUs found best."""

    plan: Plan
    said: str
    gpu: Gpu
    reported: str
    training: training.Training
    sequence: int
    derived_shape: Model
    as_sized: str
    time_scale: Scale
    title: str
    best: finding.Choice | None
    is_fastest: bool
    gap: beside.Differences | None
    runner_up: beside.Differences | None
    tie: beside.Tie | None
    frontier: frontier.Frontier | None
    cluster: LaidCluster | None
    scope: str
    problem: str
    find: str
    with_any: bool
    other_schedules: str
    limits: Limits
    errors: Mapping[str, str]
    mended: str
    compare: str
    selects: str
    ideal_bubble: str
    by_link: tuple[saying.OverLink, ...]
    egress: str
    is_tie: bool
    decide: str
    estimate_json: str
    json: str
    parts: Mapping[str, str]
    measured: Measured | None
    labels: Mapping[str, str] = field(default_factory=lambda: LABELS)
    lists: Mapping[str, Options] = field(default_factory=lambda: LISTS)
    defaults: Mapping[str, str] = field(default_factory=lambda: DEFAULTS)
    table_of = staticmethod(beside.table)


@dataclass(frozen=True)
class Limits:
    """What limits the search, in words: the memory a plan may take, the schedules, and the rest; and how many plans
    that took out."""

    memory: str
    schedules: str
    others: tuple[str, ...]
    left_out: int


@dataclass(frozen=True)
class Measured:
    """The plan, and the lab's own runs, priced by what was measured on the machine at hand."""

    by_sheet: Estimate | None
    lab_runs: tuple[here.Priced, ...]


@router.get("/planner", response_class=HTMLResponse)
def planner(request: Request) -> HTMLResponse:
    """The plan lives in the address: it can be reloaded, sent and gone back to."""
    plan = service.plan(request.query_params)
    choice, problem, refused = None, "", dict[str, str]()
    scope = request.query_params.get(SEARCH, "")
    if scope and not plan.form.is_own:
        try:
            # while one types in the form, only what is known already is shown again: a search takes seconds
            if wants_fragment(request) and not finding.is_remembered(plan, scope):
                problem = "The form has changed since the search."
            else:
                choice = finding.choose(plan, scope)
        except SpecError as error:
            refused = dict(limits.errors_of(error.violations))
            problem = limits.REFUSED if refused else str(error.violations[0].message)
    values = plan.form.values
    with_any = values["schedules"] == "any"
    shown = PlannerPage(
        plan=plan,
        said=f"{saying.finding(plan, not choice and not refused)} {saying.counted_as(plan)}".strip(),
        gpu=GPUS[plan.form.values["gpu"]],
        reported=bytes_text(GPUS[plan.form.values["gpu"]].capacity_bytes),
        training=training.training_of(plan),
        sequence=sequence_of({**plan.form.values, "sequence": None}),
        derived_shape=model_of({**plan.form.values, "model": SIZED}),
        as_sized="/planner?" + query_text({**plan.typed, "model": SIZED}),
        time_scale=step_scale(plan.lanes),
        title=_title(plan, choice, bool(refused)),
        best=choice,
        is_fastest=choice is not None and beside.is_fastest(plan, choice),
        gap=beside.against(plan.estimate, choice.options[0]) if choice and beside.is_behind(plan, choice) else None,
        runner_up=beside.runner_up(choice) if choice else None,
        tie=beside.tie(plan, choice) if choice else None,
        frontier=frontier.draw(plan, choice) if choice else None,
        cluster=cluster.draw(plan),
        scope=scope,
        problem=problem,
        with_any=with_any,
        limits=Limits(
            limits.memory_text(values),
            limits.schedules_text(values),
            limits.said_of(values, plan.typed),
            sum(choice.result.left_out.values()) if choice else 0,
        ),
        errors={**refused, **plan.errors},
        other_schedules=_search_address({**plan.typed, "schedules": "software" if with_any else "any"}, scope),
        mended="/planner?" + query_text({**plan.typed, **plan.form.mended}),
        compare="/planner/compare?" + urlencode({"a": query_text(plan.typed)}),
        selects="" if plan.form.is_own else saying.selects(plan),
        ideal_bubble=_ideal_bubble(plan),
        by_link=saying.by_link(plan),
        egress="" if plan.form.is_own else saying.egress(plan),
        is_tie=choice is not None and beside.is_tied(plan, choice),
        decide="/planner/decide?" + urlencode({name: plan.typed[name] for name in deciding.NAMES}),
        find=_search_address(plan.typed, plan.form.values["profile"] or ANY),
        estimate_json=to_json(plan.estimate, indent=2).decode(),
        json="/planner/estimate.json?" + query_text(plan.typed),
        parts=parts.addresses(plan.typed, scope),
        measured=_measured(plan),
    )
    reply = page(request, "planner/planner.html", {"shown": shown})
    if not plan.form.is_own and not plan.errors:
        _remember(reply, query_text(plan.typed))
    return reply


def _remember(reply: Response, query: str) -> None:
    """Let the browser keep which plan was looked at last, for a comparison that is opened without one."""
    if len(query) <= LONGEST_KEPT:
        reply.set_cookie(LAST_PLAN, query, max_age=A_YEAR, path="/planner/compare", httponly=True, samesite="lax")


def _search_address(typed: Mapping[str, str], scope: str) -> str:
    return "/planner?" + query_text({**typed, SEARCH: scope}) + "#p-front"


def _title(plan: Plan, choice: finding.Choice | None, is_refused: bool) -> str:
    if is_refused:
        return f"{plan.title}: no plan fits within your limits"
    return beside.verdict(plan, choice) if choice else saying.title(plan)


def _ideal_bubble(plan: Plan) -> str:
    found = counted.ideal_bubble(plan)
    return scaled(found.value, "%", 3) if found else ""


def _measured(plan: Plan) -> Measured | None:
    cluster = plan.request.cluster
    if plan.form.is_own or cluster is None or cluster.measured is None:
        return None
    runs = here.lab_runs(cluster.measured, plan.form.values["gpu"])
    return Measured(here.by_sheet(plan.request), runs)


@api.post("/estimate")
def estimate(plan: Annotated[dict[str, Any], Body()]) -> dict[str, Any]:
    """An EstimateRequest answered; every violated constraint is named with its field."""
    return service.answer_request(plan).to_json()


@router.get("/planner/search.csv")
def search_as_csv(request: Request) -> Response:
    """The plans a search of the form's GPUs found best, and those of its front, as comma-separated values."""
    made = _whole(request)
    return _file(finding.plans_of(made, request.query_params.get(SEARCH, ANY)), "text/csv", "plans.csv")


@router.get("/planner/search.json")
def search_as_json(request: Request) -> Response:
    """The search of the form's GPUs and what it found, as JSON."""
    found = finding.searched(_whole(request), request.query_params.get(SEARCH, ANY))
    return _file(json.dumps(found), "application/json", "search.json")


@router.get("/planner/estimate.json")
def estimate_as_json(request: Request) -> Response:
    """The form's plan as a request, its estimate, and what textbooks count of it, as JSON."""
    made = service.plan(request.query_params)
    _refuse_what_is_wrong(made)
    by_formulas = [line.to_json() for section in textbook.textbook(made) for line in section.lines]
    answer = {"request": json.loads(made.request_text), "estimate": made.estimate.to_json(), "textbook": by_formulas}
    return _file(json.dumps(answer), "application/json", "estimate.json")


def _whole(request: Request) -> Plan:
    """The plan of a form, if nothing in it is wrong and its model has a shape. Raises SpecError."""
    made = service.plan(request.query_params)
    _refuse_what_is_wrong(made)
    service.check_has_shape(made)
    return made


def _refuse_what_is_wrong(made: Plan) -> None:
    if made.form.replaced:
        raise SpecError([each.violation for each in made.form.replaced.values()])


def _file(text: str, kind: str, name: str) -> Response:
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(text, media_type=f"{kind}; charset=utf-8", headers=headers)


@router.get("/planner/compare", response_class=HTMLResponse)
def compare(request: Request, a: str | None = None, b: str | None = None) -> HTMLResponse:
    """Two plans side by side; `a` and `b` are addresses of plans, whole or without what stands before the mark."""
    shown = comparing.comparison({name: text for name, text in (("a", a), ("b", b)) if text is not None})
    status = HTTPStatus.UNPROCESSABLE_ENTITY if shown.is_wrong else HTTPStatus.OK
    offers = offering.offers(shown, request.cookies.get(LAST_PLAN, ""))
    return page(request, "planner/compare.html", {"shown": shown, "offers": offers}, status=status)


@router.get("/planner/compare/fastest")
def compare_with_the_fastest(request: Request) -> Response:
    """A search of the plan's GPUs, and on to the comparison with what it found best."""
    return RedirectResponse(offering.fastest_beside(request.query_params), HTTPStatus.SEE_OTHER)


@router.get("/planner/decide", response_class=HTMLResponse)
def decide(request: Request) -> HTMLResponse:
    """A plan by rule of thumb, one decision at a time; what it is for is in the address."""
    return page(request, "planner/decide.html", {"shown": deciding.path(request.query_params)})


@api.post("/search/front")
def find_front(request: Annotated[dict[str, Any], Body()]) -> dict[str, Any]:
    """For a SearchRequest: plans that nothing beats in time, memory and GPUs at once."""
    return service.answer_front(request)


@api.post("/search")
def find_best(request: Annotated[dict[str, Any], Body()]) -> dict[str, Any]:
    """A SearchRequest answered: the configurations that fit, the best first; violated constraints are named."""
    return service.answer_search(request)
