"""Pages of several runs: the list, a comparison; what a learner calls a run; letting go of one from a file."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse
from pydantic import Field
from starlette.responses import Response

from app.content.web import Content
from app.core.templating import page
from app.core.web import MOST_ROW_ID, CurrentMoment, Db, LearnerId, Now, ReadSession, RowId
from app.lab.expected import expect, offer
from app.lab.film import TERMS
from app.lab.fitting import LOOKED_THROUGH, fit_page
from app.lab.folds import Folds
from app.lab.listing import MOST_COMPARED, STANDINGS, name_run, runs_page
from app.lab.opening import remove_opened
from app.lab.side_by_side import side_by_side
from app.lab.web_form import FormData

MOST_WORDS = 200  # characters

router = APIRouter()

FitPoints = Annotated[list[Annotated[str, Query(max_length=MOST_WORDS)]] | None, Query(max_length=LOOKED_THROUGH)]
RunIds = Annotated[list[Annotated[int, Field(ge=1, le=MOST_ROW_ID)]] | None, Query(max_length=64)]


@router.get("/lab/runs", response_class=HTMLResponse)
def runs(
    request: Request,
    session: ReadSession,
    content: Content,
    learner: LearnerId,
    moment: CurrentMoment,
    q: Annotated[str, Query(max_length=MOST_WORDS)] = "",
    standing: str = "",
    number: Annotated[int, Query(ge=1, le=1_000_000, alias="page")] = 1,
) -> HTMLResponse:
    """All of the learner's runs, narrowed by words and by where they stand."""
    shown = runs_page(session, learner, content, q, standing, number)
    words = {"shown": shown, "standings": STANDINGS, "most_compared": MOST_COMPARED, "zone": moment.zone}
    return page(request, "lab/runs.html", words)


@router.get("/lab/compare", response_class=HTMLResponse)
def compare(
    request: Request, session: ReadSession, content: Content, learner: LearnerId, run: RunIds = None
) -> HTMLResponse:
    """Up to four runs beside each other."""
    folds: Folds = request.app.state.folds
    shown = side_by_side(session, learner, content, folds, run or [])
    return page(request, "lab/compare.html", {"shown": shown, "most_compared": MOST_COMPARED, "terms": TERMS})


@router.post("/lab/expected", response_class=HTMLResponse)
def expected(request: Request, session: ReadSession, learner: LearnerId, now: Now, typed: FormData) -> HTMLResponse:
    """What theory says of the form as it is filled in; nothing is queued."""
    return page(request, "lab/expected.html", {"shown": expect(session, learner, typed, now)})


@router.post("/lab/offered")
def offered(session: ReadSession, learner: LearnerId, now: Now, typed: FormData) -> JSONResponse:
    """Which choices of the form cannot work as it is filled in, and what is wrong with it; nothing is queued."""
    return JSONResponse(vars(offer(session, learner, typed, now)), headers={"Cache-Control": "no-store"})


@router.get("/lab/offered")
@router.get("/lab/expected")
def no_form() -> Response:
    """Without a form there is nothing to expect: back to it."""
    return RedirectResponse("/lab#ff", 303)


@router.get("/lab/fit", response_class=HTMLResponse)
def fit(request: Request, session: ReadSession, learner: LearnerId, without: FitPoints = None) -> HTMLResponse:
    """Laws fitted to what the learner's own runs measured, but for the points that the address leaves out."""
    folds: Folds = request.app.state.folds
    return page(request, "lab/fit.html", {"laws": fit_page(session, learner, folds, without or ())})


@router.post("/lab/runs/{run_id}/name")
def call(
    database: Db,
    learner: LearnerId,
    run_id: RowId,
    name: Annotated[str, Form()] = "",
    note: Annotated[str, Form()] = "",
) -> Response:
    """Name a run, and note something of it."""
    with database.write() as session:
        name_run(session, learner, run_id, name, note)
    return RedirectResponse(f"/lab/runs/{run_id}#called", 303)


@router.post("/lab/runs/{run_id}/remove")
def remove(database: Db, learner: LearnerId, run_id: RowId) -> Response:
    """Let go of a run that was opened from a file."""
    with database.write() as session:
        remove_opened(session, learner, run_id)
    return RedirectResponse("/lab/runs", 303)
