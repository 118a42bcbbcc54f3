"""Opening a run from a file in the browser. Like cards, it is read by a process of its own."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response

from app.core.errors import DomainError, Violation
from app.core.templating import page
from app.core.web import CurrentMoment, Db, LearnerId
from app.exchange.limits import MB
from app.exchange.uploads import Upload, begin
from app.lab.service import RUN_FILE_BYTES, RUN_FILE_ENDING, is_run_file

router = APIRouter(prefix="/lab/open")


def run_page(error: DomainError | None = None) -> dict[str, object]:
    """What the page shows: its form, and why the last file was not opened."""
    return {"error": error, "limit_mb": RUN_FILE_BYTES // MB, "ending": RUN_FILE_ENDING}


@router.get("", response_class=HTMLResponse)
def open_run(request: Request) -> HTMLResponse:
    return page(request, "exchange/open_run.html", run_page())


@router.post("", response_class=HTMLResponse)
def take_run(request: Request, database: Db, learner: LearnerId, moment: CurrentMoment, upload: Upload) -> Response:
    """Hand the file over, and lead to the page that shows how far it is."""
    name = upload[0].filename or ""
    try:
        if not is_run_file(name):
            wrong = Violation(
                "file", name[-60:], "Its name does not say that it is a run.", f"a file ending in {RUN_FILE_ENDING}"
            )
            raise DomainError("The run was not opened.", [wrong])
        return begin(request, database, upload, learner, {}, moment)
    except DomainError as error:
        return page(request, "exchange/open_run.html", run_page(error), status=error.status)
