"""Pages of sweeps: the list with its form, one sweep with its curve, its end."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Body, Header, Query, Request
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse
from pydantic import BaseModel, Field
from sqlalchemy.orm import Session
from starlette.responses import Response

from app.core.errors import DomainError, SpecError
from app.core.idempotency import once
from app.core.templating import page
from app.core.web import MOST_ROW_ID, CurrentMoment, Db, LearnerId, Now, ReadSession, RowId, WorkQueue
from app.lab import queries, reading
from app.lab.forms import FREE_FORM, MORE_KNOBS, called
from app.lab.sweeps import (
    MOST_RUNS,
    READY,
    Knob,
    SweepForm,
    Value,
    by_field,
    cancel_sweep,
    check_form,
    find_sweep,
    form_like,
    form_of,
    offer_sweep,
    submit_sweep,
    sweep_page,
    turned_again,
)
from app.lab.web_form import FormData

LISTED = 30
_IN_ORDER = ("field_1", "values_1", "field_2", "values_2", "steps", "name", "spec")  # as the form has its fields
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
    now: Now,
    run: Annotated[int | None, Query(ge=1, le=MOST_ROW_ID)] = None,
    sweep: Annotated[int | None, Query(ge=1, le=MOST_ROW_ID)] = None,
    like: Annotated[str | None, Query(max_length=40)] = None,
) -> HTMLResponse:
    """The learner's sweeps and the form of a new one, which starts from `run` and turns what `sweep` turned where they
    are named."""
    form = form_like(like)
    if run is not None:
        started = form_of(reading.find_run(session, learner, run).spec)
        form = replace(form, spec=started.spec, steps=started.steps)
    if sweep is not None:
        form = turned_again(form, map(Knob.from_json, find_sweep(session, learner, sweep).knobs))
    return _page(request, session, learner, form, now)


def _page(
    request: Request,
    session: Session,
    learner: int,
    form: SweepForm,
    now: datetime,
    refused: DomainError | SpecError | None = None,
) -> HTMLResponse:
    fields = SweepForm.__dataclass_fields__
    at, elsewhere = by_field(form, refused.violations if refused else [])
    shown = {
        "form": form,
        "errors": {field: at.get(field, "") for field in fields},
        "wrong": [field for field in _IN_ORDER if field in at],
        "elsewhere": elsewhere,
        "refused": str(refused) if refused is not None and not refused.violations else "",
        "first": next((field for field in _IN_ORDER if field in at), ""),
        "sweeps": (made := queries.list_sweeps(session, learner, LISTED)),
        "names": {each.id: " and ".join(called(knob["field"]) for knob in each.knobs) for each in made},
        "most_runs": MOST_RUNS,
        "ready": READY,
        "key": secrets.token_hex(8),
        "offer": offer_sweep(session, learner, form, now),
        "knobs": [(path, called(path)) for path in _OFFERED],
    }
    return page(request, "lab/sweeps.html", shown, status=getattr(refused, "status", 422) if refused else 200)


@router.post("/lab/sweeps/offered")
def offered(session: ReadSession, learner: LearnerId, now: Now, typed: FormData) -> JSONResponse:
    """How many runs the form comes to as it is filled in, how long they take, and what is wrong with it."""
    return JSONResponse(
        vars(offer_sweep(session, learner, SweepForm.of(typed), now)), headers={"Cache-Control": "no-store"}
    )


@router.get("/lab/sweeps/offered")
def no_form() -> Response:
    """Without a form there is nothing to offer: back to it."""
    return RedirectResponse("/lab/sweeps", 303)


@router.post("/lab/sweeps")
def start(request: Request, database: Db, queue: WorkQueue, learner: LearnerId, now: Now, typed: FormData) -> Response:
    """Queue all runs of a sweep, or none."""
    form = SweepForm.of(typed)

    def submit(session: Session) -> dict[str, int]:
        spec, knobs, wrong = check_form(session, form, now)
        if wrong:
            raise DomainError("No run of it was started.", wrong)
        return {"id": submit_sweep(session, learner, form.name, spec, knobs, now).id}

    try:
        with database.write() as session:
            reply, repeated = once(
                session, learner, typed.get("key"), "/lab/sweeps", now, lambda: submit(session), typed
            )
    except (DomainError, SpecError) as error:
        with database.read() as session:
            return _page(request, session, learner, form, now, error)
    if not repeated:
        queue.nudge_workers()
    return RedirectResponse(f"/lab/sweeps/{reply['id']}", 303)


@router.get("/lab/sweeps/{sweep_id}", response_class=HTMLResponse)
def show(
    request: Request,
    session: ReadSession,
    learner: LearnerId,
    moment: CurrentMoment,
    sweep_id: RowId,
    quantity: str | None = None,
) -> HTMLResponse:
    """A sweep: theory's curve through what was measured, the residuals, every run."""
    shown = sweep_page(session, learner, sweep_id, quantity or None, moment)
    return page(request, "lab/sweep.html", {"shown": shown, "under_way": reading.count_active(session, learner)})


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
