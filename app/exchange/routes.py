"""Taking cards in and out in the browser: upload, what became of it, and the files to download."""

from __future__ import annotations

import tempfile
from pathlib import Path

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from sqlalchemy.orm import Session

from app.content.catalogue import Catalogue
from app.content.web import Content
from app.core.db import Database
from app.core.errors import DomainError
from app.core.templating import page, wants_fragment
from app.core.web import CurrentMoment, Db, LearnerId, ReadSession, RowId
from app.exchange import imports, run_routes, service
from app.exchange.limits import MB, UPLOAD_BYTES
from app.exchange.run_routes import run_page
from app.exchange.uploads import JobId, Upload, begin, folder_of, lead
from app.lab.service import is_run_file

router = APIRouter()
router.include_router(run_routes.router)
cards = APIRouter(prefix="/study/exchange")

TYPES = {".apkg": "application/octet-stream", ".csv": "text/csv", ".zip": "application/zip"}


@cards.get("", response_class=HTMLResponse)
def exchange(request: Request, session: ReadSession, content: Content, learner: LearnerId) -> HTMLResponse:
    return _page(request, session, content, learner)


@cards.post("", response_class=HTMLResponse)
def take_in(
    request: Request, database: Db, content: Content, learner: LearnerId, moment: CurrentMoment, upload: Upload
) -> Response:
    """Hand the file to a process of its own, and lead to the page that shows how far it is."""
    known = service.revisions_of(content)
    try:
        return begin(request, database, upload, learner, known, moment)
    except DomainError as error:
        return _failed(request, database, content, learner, error)


@cards.get("/jobs/{job_id}", response_class=HTMLResponse)
def show_job(request: Request, database: Db, content: Content, learner: LearnerId, job_id: JobId) -> Response:
    """How far an import is; when it is over, what became of it. htmx asks for its standing alone."""
    job = imports.find(folder_of(request), job_id)
    if job.state == "done":
        return lead(request, job.leads_to)
    if job.state != "running":
        if wants_fragment(request):
            return lead(request, f"/study/exchange/jobs/{job_id}")
        if is_run_file(job.name):
            return page(request, "exchange/open_run.html", run_page(job.error), status=job.error.status)
        return _failed(request, database, content, learner, job.error)
    return page(request, "exchange/job.html", {"job": job, "is_run": is_run_file(job.name)})


@cards.post("/jobs/{job_id}/cancel")
def cancel(request: Request, job_id: JobId) -> Response:
    imports.cancel(folder_of(request), job_id)
    return RedirectResponse(f"/study/exchange/jobs/{job_id}", 303)


@cards.get("/rankzero{ending}")
def download(
    session: ReadSession,
    content: Content,
    learner: LearnerId,
    moment: CurrentMoment,
    ending: str,
    scheduling: bool = False,
    which: service.Which = "all",
) -> Response:
    """The cards as a file."""
    if ending == ".apkg":
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "cards.apkg"
            service.export_anki(session, learner, content, path, moment, scheduling=scheduling, which=which)
            data = path.read_bytes()
    else:
        _, data = service.own_cards_file(session, learner, ending)
    headers = {"Content-Disposition": f'attachment; filename="rankzero{ending}"', "Cache-Control": "no-store"}
    return Response(data, media_type=TYPES[ending], headers=headers)


@cards.get("/{report_id}", response_class=HTMLResponse)
def show_report(request: Request, session: ReadSession, learner: LearnerId, report_id: RowId) -> HTMLResponse:
    report = service.find_report(session, learner, report_id)
    return page(request, "exchange/report.html", {"report": report})


def _failed(request: Request, database: Database, content: Catalogue, learner: int, error: DomainError) -> HTMLResponse:
    with database.read() as session:
        return _page(request, session, content, learner, error)


def _page(
    request: Request, session: Session, content: Catalogue, learner: int, error: DomainError | None = None
) -> HTMLResponse:
    context = {
        "reports": service.list_reports(session, learner),
        "own": service.count_own(session, learner),
        "catalogue": len(content.cards),
        "error": error,
        "limit_mb": UPLOAD_BYTES // MB,
    }
    return page(request, "exchange/exchange.html", context, status=error.status if error else 200)


router.include_router(cards)
