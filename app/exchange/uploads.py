"""A file that was sent by a browser, on its way to the process that reads it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, cast

from fastapi import Depends, Request
from fastapi import Path as PathParameter
from fastapi.responses import RedirectResponse, Response
from starlette.datastructures import UploadFile

from app.core.db import Database
from app.core.errors import DomainError, Violation
from app.core.moment import Moment
from app.core.templating import wants_fragment
from app.exchange import imports
from app.exchange.limits import MB, UPLOAD_BYTES


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
            "The file was not imported.",
            [Violation("file", "", "No file was chosen.", "an .apkg, .csv, .md or .zip; of a run, an .rzrun")],
        )
    return file, "scheduling" in form


Upload = Annotated[tuple[UploadFile, bool], Depends(_upload)]
JobId = Annotated[str, PathParameter(pattern="^[0-9a-f]{16}$")]


def folder_of(request: Request) -> Path:
    """Where this install's imports are."""
    return cast(Path, request.app.state.data_folder / "imports")


def begin(
    request: Request,
    database: Database,
    upload: tuple[UploadFile, bool],
    learner: int,
    known: Mapping[str, int],
    moment: Moment,
) -> Response:
    """Hand the file to a process of its own, and lead to the page that shows how far it is. Raises DomainError."""
    file, scheduling = upload
    url = database.engine.url.render_as_string(hide_password=False)
    order = imports.Order(Path(cast(str, file.filename)).name[-200:], url, learner, known, moment, scheduling)
    job_id = imports.start(folder_of(request), cast(Any, file.file), order)
    return RedirectResponse(f"/study/exchange/jobs/{job_id}", 303)


def lead(request: Request, address: str) -> Response:
    """To another page, whoever asks: a part of a page cannot follow a redirect."""
    if wants_fragment(request):
        return Response(headers={"HX-Redirect": address, "Cache-Control": "no-store"})
    return RedirectResponse(address, 303)
