"""Pages of sweeps: the list with its form, one sweep with its curve, its end."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Body, Header, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse
from pydantic import BaseModel, Field
from sqlalchemy.orm import Session
from starlette.responses import Response

from app.core.errors import DomainError, SpecError, Violation
from app.core.idempotency import once
from app.core.templating import page
from app.core.web import MOST_ROW_ID, Db, LearnerId, Now, ReadSession, RowId, WorkQueue
from app.lab import queries, reading
from app.lab.forms import FREE_FORM, MORE_KNOBS, called, path_called, said
from app.lab.naming import describe, title
from app.lab.sweeps import (
    MOST_RUNS,
    Knob,
    SweepForm,
    Value,
    base_of,
    cancel_sweep,
    form_like,
    read_form,
    submit_sweep,
    sweep_page,
)
from app.lab.web_form import FormData
from labs.spec import of_any_size, parse_run_spec

LISTED = 30
_OFFERED = tuple(
    path
    for path in (*(field.path for field in FREE_FORM), *MORE_KNOBS)
    if path.startswith(("model.", "training.", "parallel."))
)

router = APIRouter()
api = APIRouter(tags=["lab"])


@router.get("/lab/sweeps", response_class=HTMLResponse)
def sweeps(
    request: Request,
    session: ReadSession,
    learner: LearnerId,
    run: Annotated[int | None, Query(ge=1, le=MOST_ROW_ID)] = None,
    like: Annotated[str | None, Query(max_length=40)] = None,
) -> HTMLResponse:
    """The learner's sweeps and the form of a new one, which starts from `run` where one is named."""
    form = form_like(like)
    if run is not None:
        form = replace(form, spec=json.dumps(reading.find_run(session, learner, run).spec, indent=2))
    return _page(request, session, learner, form)


def _page(
    request: Request,
    session: Session,
    learner: int,
    form: SweepForm,
    refused: DomainError | SpecError | None = None,
) -> HTMLResponse:
    fields = SweepForm.__dataclass_fields__
    at, elsewhere = _by_field(form, refused.violations if refused else [])
    shown = {
        "form": form,
        "errors": {field: at.get(field, "") for field in fields},
        "wrong": [field for field in fields if field in at],
        "elsewhere": elsewhere,
        "refused": str(refused) if refused is not None and not refused.violations else "",
        "first": next((field for field in fields if field in at), ""),
        "sweeps": (made := queries.list_sweeps(session, learner, LISTED)),
        "names": {each.id: " and ".join(called(knob["field"]) for knob in each.knobs) for each in made},
        "most_runs": MOST_RUNS,
        "key": secrets.token_hex(8),
        "base": _base(form),
        "knobs": [(path, called(path)) for path in _OFFERED],
    }
    return page(request, "lab/sweeps.html", shown, status=getattr(refused, "status", 422) if refused else 200)


def _by_field(form: SweepForm, violations: Sequence[Violation]) -> tuple[Mapping[str, str], Sequence[str]]:
    """What is wrong at each field of the form, what is wrong with a value at the values of its knob; and elsewhere."""
    turned = {path_called(path): name for path, name in ((form.field_2, "values_2"), (form.field_1, "values_1"))}
    at: dict[str, str] = {}
    elsewhere = []
    for each in violations:
        name = turned.get(each.field, each.field)
        if name in SweepForm.__dataclass_fields__:
            at[name] = f"{at[name]} {said(each)}" if name in at else said(each)
        else:
            elsewhere.append(f"{called(each.field)}: {said(each)}")
    return at, elsewhere


def _base(form: SweepForm) -> str:
    """What all runs of the sweep have alike, in words; what cannot be read is shown as it was typed."""
    try:
        turned = {path_called(field) for field in (form.field_1, form.field_2)}
        spec = parse_run_spec(base_of(json.loads(form.spec), turned), sizes=of_any_size)
    except (ValueError, RecursionError, SpecError):
        return "as it was typed"
    return f"{title(spec)}, {describe(spec)}"


@router.post("/lab/sweeps")
def start(request: Request, database: Db, queue: WorkQueue, learner: LearnerId, now: Now, typed: FormData) -> Response:
    """Queue all runs of a sweep, or none."""
    form = SweepForm.of(typed)

    def submit(session: Session) -> dict[str, Any]:
        spec, knobs = read_form(form)
        return {"id": submit_sweep(session, learner, form.name, spec, knobs, now).id}

    try:
        with database.write() as session:
            reply, repeated = once(
                session, learner, typed.get("key"), "/lab/sweeps", now, lambda: submit(session), typed
            )
    except (DomainError, SpecError) as error:
        with database.read() as session:
            return _page(request, session, learner, form, error)
    if not repeated:
        queue.nudge_workers()
    return RedirectResponse(f"/lab/sweeps/{reply['id']}", 303)


@router.get("/lab/sweeps/{sweep_id}", response_class=HTMLResponse)
def show(
    request: Request, session: ReadSession, learner: LearnerId, sweep_id: RowId, quantity: str | None = None
) -> HTMLResponse:
    """A sweep: theory's curve through what was measured, the residuals, every run."""
    return page(request, "lab/sweep.html", {"shown": sweep_page(session, learner, sweep_id, quantity or None)})


@router.post("/lab/sweeps/{sweep_id}/cancel")
def cancel(database: Db, learner: LearnerId, now: Now, sweep_id: RowId) -> Response:
    """Ask for the end of all of its runs."""
    with database.write() as session:
        cancel_sweep(session, learner, sweep_id, now)
    return RedirectResponse(f"/lab/sweeps/{sweep_id}", 303)


class KnobRequest(BaseModel):
    """A field of the spec, and what it is turned to."""

    field: str
    values: Annotated[list[Value], Field(min_length=1, max_length=MOST_RUNS)]


class SweepRequest(BaseModel):
    """A spec, and one or two knobs to turn."""

    spec: dict[str, Any]
    knobs: Annotated[list[KnobRequest], Field(min_length=1, max_length=2)]
    name: str = ""


@api.post("/sweeps", status_code=201)
def submit(
    database: Db,
    queue: WorkQueue,
    learner: LearnerId,
    now: Now,
    asked: Annotated[SweepRequest, Body()],
    idempotency_key: Annotated[str | None, Header()] = None,
) -> Mapping[str, Any]:
    """Queue all runs of a sweep, or none."""
    knobs = [Knob(each.field, tuple(each.values)) for each in asked.knobs]

    def work() -> dict[str, Any]:
        sweep = submit_sweep(session, learner, asked.name, asked.spec, knobs, now)
        return {"id": sweep.id, "runs": [run.id for run in queries.list_runs_of_sweep(session, sweep.id)]}

    with database.write() as session:
        reply, repeated = once(session, learner, idempotency_key, "/api/v1/lab/sweeps", now, work, asked.model_dump())
    if not repeated:
        queue.nudge_workers()
    return reply
