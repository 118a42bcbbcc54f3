"""The lab's pages, its event stream and its API."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Path, Query, Request
from fastapi.responses import (
    HTMLResponse,
    JSONResponse,
    RedirectResponse,
    Response,
)
from pydantic import BaseModel
from sqlalchemy.orm import Session

from app.content.catalogue import Catalogue
from app.content.players.player import Player
from app.content.schemas import Experiment
from app.content.web import Content
from app.core.db import Database
from app.core.errors import DomainError, NotFound, SpecError
from app.core.idempotency import once
from app.core.moment import Moment
from app.core.queue import Queue
from app.core.templating import environment, page, wants_fragment
from app.core.web import (
    MOST_ROW_ID,
    CurrentMoment,
    Db,
    LearnerId,
    Now,
    ReadSession,
    RowId,
    WorkQueue,
)
from app.lab import (
    artifacts,
    device_routes,
    download_routes,
    findings,
    forms,
    live,
    many_routes,
    matrix,
    pages,
    reading,
    run_page,
    stream_routes,
    submitting,
    support,
    sweep_routes,
    takers,
)
from app.lab.download_routes import MOST_RANK
from app.lab.film import film_of
from app.lab.folds import Folds
from app.lab.knobs import read_settings, spec_with
from app.lab.models import Run
from app.lab.playing import figure_of
from app.lab.web_form import FormData
from labs.spec import RunSpec

router = APIRouter()
streams = stream_routes.router
router.include_router(device_routes.router)
router.include_router(many_routes.router)
router.include_router(sweep_routes.router)
api = APIRouter(prefix="/api/v1/lab", tags=["lab"])
api.include_router(sweep_routes.api)
api.include_router(download_routes.router)
api.include_router(stream_routes.api)

Words = Annotated[str, Query(max_length=100)]


@router.get("/lab", response_class=HTMLResponse)
def lab(
    request: Request,
    session: ReadSession,
    content: Content,
    learner: LearnerId,
    moment: CurrentMoment,
    again: Annotated[int | None, Query(ge=1, le=MOST_ROW_ID)] = None,
    change: Words = "",
    show: Literal["all", "open"] = "all",
) -> HTMLResponse:
    """The lab's front page; `again` fills the form in as one's own earlier run had it, but for a `change` of a field;
    `show` open leaves of the experiments those that were not run yet."""
    typed = pages.typed_again(session, learner, again, change) if again is not None else None
    next_ = _next_experiment(request, session, learner, content, moment)
    shown = pages.index(session, learner, content, moment.now, next_, typed, show=show, again=again)
    return page(request, "lab/index.html", {"shown": shown})


def _next_experiment(
    request: Request, session: Session, learner: int, content: Catalogue, moment: Moment
) -> Experiment | None:
    """What Today offers, which knows of what was done in all rooms."""
    offers = request.app.state.offers(session, learner, content, moment).experiments
    return offers[0].item if offers else None


@router.get("/lab/experiments/{key}/runs")
def runs_of_experiment(content: Content, key: str) -> Response:
    """As with one's own runs: the address of a prediction that was refused leads back to the experiment."""
    return RedirectResponse(f"/lab/experiments/{pages.find_experiment(content, key).slug}", 303)


@router.get("/lab/experiments/{key}", response_class=HTMLResponse)
def experiment(
    request: Request, session: ReadSession, content: Content, learner: LearnerId, now: Now, key: str
) -> HTMLResponse:
    found = pages.find_experiment(content, key)
    shown = pages.experiment(session, learner, content, found, dict(request.query_params), now)
    return page(request, "lab/experiment.html", {"shown": shown})


@router.post("/lab/experiments/{key}/runs")
def start_experiment(
    request: Request,
    database: Db,
    queue: WorkQueue,
    content: Content,
    learner: LearnerId,
    now: Now,
    key: str,
    typed: FormData,
) -> Response:
    """Lock the prediction and queue the run."""
    found = pages.find_experiment(content, key)
    prediction = pages.typed_prediction(found, typed)

    def submit(session: Session) -> dict[str, int]:
        spec = spec_with(found, read_settings(found, typed))
        return {"id": submitting.submit_run(session, learner, spec, prediction, now, found.id).id}

    try:
        with database.write() as session:
            path = f"/lab/experiments/{found.id}/runs"
            reply, repeated = once(session, learner, typed.get("key"), path, now, lambda: submit(session), typed)
    except (DomainError, SpecError) as error:
        with database.read() as session:
            shown = pages.experiment(session, learner, content, found, typed, now, error)
        return page(request, "lab/experiment.html", {"shown": shown}, status=getattr(error, "status", 422))
    if not repeated:
        queue.nudge_workers()
    return RedirectResponse(f"/lab/runs/{reply['id']}", 303)


@router.post("/lab/runs")
def start_run(
    request: Request,
    database: Db,
    queue: WorkQueue,
    content: Content,
    learner: LearnerId,
    moment: CurrentMoment,
    typed: FormData,
) -> Response:
    """Queue a run of one's own, from the form's fields or written out as JSON."""
    now = moment.now

    def submit(session: Session) -> dict[str, int]:
        spec = forms.spec_of_text(typed["spec"]) if "spec" in typed else forms.spec_of_form(typed)
        return {"id": submitting.submit_run(session, learner, spec, forms.prediction_of_form(typed), now).id}

    try:
        with database.write() as session:
            reply, repeated = once(session, learner, typed.get("key"), "/lab/runs", now, lambda: submit(session), typed)
    except (DomainError, SpecError) as error:
        with database.read() as session:
            next_ = _next_experiment(request, session, learner, content, moment)
            listed = pages.index(session, learner, content, now, next_, typed, error)
        return page(request, "lab/index.html", {"shown": listed}, status=getattr(error, "status", 422))
    if not repeated:
        queue.nudge_workers()
    return RedirectResponse(f"/lab/runs/{reply['id']}", 303)


@router.get("/lab/strategies", response_class=HTMLResponse)
def strategies(
    request: Request, axes: Words = "", feature: Words = "", show: Words = "all", find: Words = ""
) -> HTMLResponse:
    """The grid; one cell's words alone when the page's script asks for them."""
    cell = matrix.find(axes, feature)
    if cell and wants_fragment(request):
        return page(request, "lab/parts/strategy.html", {"detail": support.detail(cell)})
    return page(request, "lab/strategies.html", support.page(axes, feature, show, find))


@router.get("/lab/runs/{run_id}", response_class=HTMLResponse)
def show_run(
    request: Request, session: ReadSession, content: Content, learner: LearnerId, moment: CurrentMoment, run_id: RowId
) -> HTMLResponse:
    run = reading.find_run(session, learner, run_id)
    folds: Folds = request.app.state.folds
    shown = run_page.show(session, run, content, folds.view(session, run), moment)
    more = {
        "parts": live.draw_parts(shown),
        "panels": live.PANELS,
        "checkpoint": _checkpoint(request, run),
        "snapshots": artifacts.list_snapshots_of(run, request.app.state.run_folder),
    }
    return page(request, "lab/run.html", vars(shown) | more)


def _checkpoint(request: Request, run: Run) -> tuple[int, int] | None:
    """Step and bytes of the checkpoint that can be had."""
    found = artifacts.last_checkpoint(run, request.app.state.run_folder)
    if found is None:
        return None
    with found.opened:
        return found.step, found.size_bytes


@router.get("/lab/runs/{run_id}/film/{rank}", response_class=HTMLResponse)
def film(
    request: Request,
    session: ReadSession,
    learner: LearnerId,
    run_id: RowId,
    rank: Annotated[int, Path(ge=0, le=MOST_RANK)],
) -> HTMLResponse:
    """One rank's reel of the watched step, for the page's film strip."""
    run = reading.find_run(session, learner, run_id)
    folds: Folds = request.app.state.folds
    view = folds.view(session, run)
    found = None if findings.is_hidden(run) else film_of(RunSpec.model_validate(run.spec), view, rank)
    if found is None:
        raise NotFound(f"Run {run_id} has no film of rank {rank} to show.")
    return page(request, "partials/reel.html", {"film": found})


@router.get("/lab/runs/{run_id}/figure", response_class=HTMLResponse)
def figure(request: Request, session: ReadSession, learner: LearnerId, run_id: RowId) -> HTMLResponse:
    """A run's figure as it was asked for: where its buttons lead without its script."""
    return page(request, "lab/figure.html", {"run_id": run_id, "figure": _figure(request, session, learner, run_id)})


@router.get("/lab/runs/{run_id}/figure/frames")
def figure_frames(request: Request, session: ReadSession, learner: LearnerId, run_id: RowId) -> JSONResponse:
    """All its states, and the figure itself, for its script."""
    found = _figure(request, session, learner, run_id)
    html = environment().get_template("reference/figure.html").render(p=found)
    return JSONResponse(found.as_json(html), headers={"Cache-Control": "no-cache"})


def _figure(request: Request, session: Session, learner: int, run_id: int) -> Player:
    run = reading.find_run(session, learner, run_id)
    turned = dict(request.query_params)
    found = figure_of(RunSpec.model_validate(run.spec), run_page.figure_address(run), turned)
    if found is None or findings.is_hidden(run):
        raise NotFound(f"Run {run_id} has no figure to step through.")
    return found


@router.post("/lab/runs/{run_id}/cancel")
def cancel(database: Db, queue: WorkQueue, learner: LearnerId, now: Now, run_id: RowId) -> Response:
    _cancel(database, queue, learner, now, run_id)
    return RedirectResponse(f"/lab/runs/{run_id}", 303)


class RunRequest(BaseModel):
    """A run to queue: a RunSpec, and what the learner predicts of it."""

    spec: dict[str, Any]
    prediction: dict[str, Any] | None = None
    experiment: str | None = None


@api.post("/runs", status_code=201)
def submit(
    database: Db,
    queue: WorkQueue,
    content: Content,
    learner: LearnerId,
    now: Now,
    asked: RunRequest,
    idempotency_key: Annotated[str | None, Header()] = None,
) -> dict[str, Any]:
    """Queue a run. Every violation of the spec at once; nothing is queued then."""
    experiment_id = pages.find_experiment(content, asked.experiment).id if asked.experiment else None

    def work() -> dict[str, Any]:
        run = submitting.submit_run(session, learner, asked.spec, asked.prediction, now, experiment_id)
        return {
            "id": run.id,
            "status": run.status,
            "queue_position": reading.queue_position(session, run),
            "warning": takers.why_nobody_takes(session, RunSpec.model_validate(run.spec), now),
        }

    with database.write() as session:
        reply, repeated = once(session, learner, idempotency_key, "/api/v1/lab/runs", now, work, asked.model_dump())
    if not repeated:
        queue.nudge_workers()
    return reply


@api.get("/runs/{run_id}")
def get_run(session: ReadSession, learner: LearnerId, run_id: RowId) -> dict[str, Any]:
    """A run: where it stands, prediction, theory and, at the end, result or failure."""
    return run_page.run_json(session, reading.find_run(session, learner, run_id))


@api.post("/runs/{run_id}/cancel")
def cancel_run(database: Db, queue: WorkQueue, learner: LearnerId, now: Now, run_id: RowId) -> dict[str, Any]:
    """Ask for a run's end."""
    return _cancel(database, queue, learner, now, run_id)


def _cancel(database: Database, queue: Queue, learner: int, now: datetime, run_id: int) -> dict[str, Any]:
    """Whoever looks on sees at once that it was asked for."""
    with database.write() as session:
        run = run_page.run_json(session, submitting.cancel_run(session, learner, run_id, now))
    queue.wake_viewers(run_id)
    return run
