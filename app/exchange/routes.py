"""Taking cards in and out in the browser: upload, what became of it, and the files to download."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated, Any, cast

from fastapi import APIRouter, Depends, Request
from fastapi import Path as PathParameter
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from sqlalchemy.orm import Session
from starlette.datastructures import UploadFile

from app.content.catalogue import Catalogue
from app.content.web import Content
from app.core.db import Database
from app.core.errors import DomainError, Violation
from app.core.templating import page, wants_fragment
from app.core.web import CurrentMoment, Db, LearnerId, ReadSession, RowId
from app.exchange import imports, service
from app.exchange.limits import MB, UPLOAD_BYTES

router = APIRouter(prefix="/study/exchange")

TYPES = {".apkg": "application/octet-stream", ".csv": "text/csv", ".zip": "application/zip"}


async def _upload(request: Request) -> tuple[UploadFile, bool]:
    """The file and whether its schedule is wanted. What is too large is refused before it is read.

    The server reads no more of a body than its Content-Length says, so one that says nothing is not taken.
    """
    length = request.headers.get("content-length", "")
    known = length.isdecimal() and "transfer-encoding" not in request.headers
    if not known or int(length) > UPLOAD_BYTES + MB:
        raise DomainError(
            "The file was not imported.",
            [Violation("file", f"{length or 'unknown'} bytes", "It is too large.", f"up to {UPLOAD_BYTES // MB} MB")],
        )
    form = await request.form(max_files=1, max_fields=5)
    file = form.get("file")
    if not isinstance(file, UploadFile) or not file.filename:
        raise DomainError(
            "The file was not imported.", [Violation("file", "", "No file was chosen.", "an .apkg, .csv, .md or .zip")]
        )
    return file, "scheduling" in form


Upload = Annotated[tuple[UploadFile, bool], Depends(_upload)]


@router.get("", response_class=HTMLResponse)
def exchange(request: Request, session: ReadSession, content: Content, learner: LearnerId) -> HTMLResponse:
    return _page(request, session, content, learner)


@router.post("", response_class=HTMLResponse)
def take_in(
    request: Request, database: Db, content: Content, learner: LearnerId, moment: CurrentMoment, upload: Upload
) -> Response:
    """Hand the file to a process of its own, and lead to the page that shows how far it is."""
    file, scheduling = upload
    url = database.engine.url.render_as_string(hide_password=False)
    known = service.revisions_of(content)
    order = imports.Order(Path(cast(str, file.filename)).name[-200:], url, learner, known, moment, scheduling)
    try:
        job_id = imports.start(_folder(request), cast(Any, file.file), order)
    except DomainError as error:
        return _failed(request, database, content, learner, error)
    return RedirectResponse(f"/study/exchange/jobs/{job_id}", 303)


def _folder(request: Request) -> Path:
    return cast(Path, request.app.state.data_folder / "imports")


JobId = Annotated[str, PathParameter(pattern="^[0-9a-f]{16}$")]


@router.get("/jobs/{job_id}", response_class=HTMLResponse)
def show_job(request: Request, database: Db, content: Content, learner: LearnerId, job_id: JobId) -> Response:
    """How far an import is; when it is over, what became of it. htmx asks for its standing alone."""
    job = imports.find(_folder(request), job_id)
    if job.state == "done":
        return _lead(request, f"/study/exchange/{job.report}")
    if job.state != "running":
        if wants_fragment(request):
            return _lead(request, f"/study/exchange/jobs/{job_id}")
        return _failed(request, database, content, learner, job.error)
    return page(request, "exchange/job.html", {"job": job})


def _lead(request: Request, address: str) -> Response:
    """To another page, whoever asks: a part of a page cannot follow a redirect."""
    if wants_fragment(request):
        return Response(headers={"HX-Redirect": address, "Cache-Control": "no-store"})
    return RedirectResponse(address, 303)


@router.post("/jobs/{job_id}/cancel")
def cancel(request: Request, job_id: JobId) -> Response:
    imports.cancel(_folder(request), job_id)
    return RedirectResponse(f"/study/exchange/jobs/{job_id}", 303)


@router.get("/rankzero{ending}")
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


@router.get("/{report_id}", response_class=HTMLResponse)
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
