"""Parts of the planner's page that are worked out only for those who look at them: each is put into the page when it is
opened, and is a page by itself without a script."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response
from pydantic_core import to_json

from app.core.errors import SpecError, Violation
from app.core.templating import page, wants_fragment
from app.planner import beside, counted, finding, here, service, textbook
from app.planner.fields import SEARCH, query_text
from app.planner.made import Plan
from app.theory.planner import Flags, Step

router = APIRouter()


@dataclass(frozen=True)
class Part:
    """What every part says of the page it belongs to; `is_part` where it is put into that page."""

    plan: Plan
    is_part: bool

    @property
    def address(self) -> str:
        """Where the page is that it belongs to."""
        return "/planner?" + query_text(self.plan.typed)


@dataclass(frozen=True)
class TextbookPage(Part):
    """A plan by the textbook and by the engine."""

    sections: tuple[counted.Section, ...]


@dataclass(frozen=True)
class ChangesPage(Part):
    """What one change of a plan brings: the best of them, and every one."""

    advice: tuple[finding.Advice, ...]
    steps: tuple[Step, ...]
    table: beside.Table
    change_of = staticmethod(finding.change_of)


@dataclass(frozen=True)
class RunPage(Part):
    """A plan as other programs take it: a small run of its shape, a dry run, and flags. `key` is of one start."""

    tried: here.Tried
    dry: here.Dry | here.NotDry
    dry_file: str
    flags: tuple[Flags, ...]
    key: str = field(default_factory=lambda: secrets.token_hex(8))


def addresses(typed: Mapping[str, str], scope: str) -> dict[str, str]:
    """Where each part of a plan's page is, by name."""
    plan = query_text(typed)
    scoped = query_text({**typed, SEARCH: scope}) if scope else plan
    queries = {"textbook": plan, "changes": scoped, "run": plan}
    return {name: f"/planner/{name}?{query}" for name, query in queries.items()}


@router.get("/planner/textbook", response_class=HTMLResponse)
def by_textbook(request: Request) -> HTMLResponse:
    """What the plan of an address comes to by closed formulas, beside the engine's numbers."""
    plan = service.plan(request.query_params)
    shown = TextbookPage(plan, wants_fragment(request), textbook.textbook(plan))
    return page(request, "planner/textbook.html", {"shown": shown})


@router.get("/planner/changes", response_class=HTMLResponse)
def changes(request: Request) -> HTMLResponse:
    """What one step on every axis brings. A size alone has no axes."""
    plan = service.plan(request.query_params)
    scope = request.query_params.get(SEARCH, "")
    steps = () if plan.form.is_own else finding.steps_from(plan)
    advice, table = finding.advice(plan, steps, scope), beside.steps_table(steps)
    shown = ChangesPage(plan, wants_fragment(request), advice, steps, table)
    return page(request, "planner/changes.html", {"shown": shown})


@router.get("/planner/run", response_class=HTMLResponse)
def run(request: Request) -> HTMLResponse:
    """The plan as a run of this lab, as a dry run, and as flags of other programs."""
    plan = _with_shape(request)
    tried, dry = here.tried_here(plan.request), here.dry(plan.request, plan.estimate)
    file = "/planner/dryrun.json?" + query_text(plan.typed)
    shown = RunPage(plan, wants_fragment(request), tried, dry, file, service.flags(plan))
    return page(request, "planner/run.html", {"shown": shown})


@router.get("/planner/dryrun.json")
def dryrun(request: Request) -> Response:
    """The spec of the plan's dry run, as a file for `rankzero dryrun`."""
    plan = _with_shape(request)
    found = here.dry(plan.request, plan.estimate)
    if isinstance(found, here.NotDry):
        raise SpecError([Violation("plan", plan.title, found.reason, "a plan that the lab can take dry")])
    headers = {"Content-Disposition": 'attachment; filename="dryrun.json"'}
    return Response(to_json(found.spec, indent=2), media_type="application/json", headers=headers)


def _with_shape(request: Request) -> Plan:
    """Raises SpecError for a size alone."""
    plan = service.plan(request.query_params)
    service.check_has_shape(plan)
    return plan
