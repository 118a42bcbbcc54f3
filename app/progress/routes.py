"""Progress, the interview date, and a learner's data."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from typing import Annotated

from fastapi import APIRouter, Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse

from app.content.web import Content
from app.core import queue
from app.core.errors import DomainError, Violation
from app.core.templating import page
from app.core.web import CurrentMoment, Db, LearnerId, Now, ReadSession, WorkQueue, WriteSession
from app.lab import service as lab
from app.progress import data
from app.progress.evidence import FEWEST
from app.progress.planning import planning, way_to_next
from app.progress.service import progress
from app.study import api as study

router = APIRouter(prefix="/progress")


@router.get("", response_class=HTMLResponse)
def show(
    request: Request,
    session: ReadSession,
    content: Content,
    learner: LearnerId,
    moment: CurrentMoment,
    deleted: bool = False,
) -> HTMLResponse:
    standing = progress(session, learner, content, moment)
    context = {
        "standing": standing,
        "deleted": deleted,
        "fewest_to_fit": study.FEWEST_REVIEWS_TO_FIT,
        "way": way_to_next(session, learner, content, moment),
        "fewest": FEWEST,
    }
    return page(request, "progress/progress.html", context | standing.charts)


@router.get("/plan", response_class=HTMLResponse)
def show_plan(
    request: Request, session: ReadSession, content: Content, learner: LearnerId, moment: CurrentMoment
) -> HTMLResponse:
    context = {"plan": planning(session, learner, content, moment), "limits": study, "preset": content.preparation}
    return page(request, "progress/plan.html", context)


@router.post("/plan")
def set_plan(
    database: Db,
    content: Content,
    learner: LearnerId,
    moment: CurrentMoment,
    day: Annotated[str, Form(max_length=20)] = "",
    minutes_per_day: Annotated[int | None, Form()] = None,
    preset: Annotated[bool, Form()] = False,
) -> Response:
    """Set the date; the preset is the content's own preparation, from today."""
    today = date.fromordinal(study.today(moment))
    chosen = today + timedelta(days=content.preparation.days) if preset else _parsed(day)
    minutes = content.preparation.minutes_per_day if minutes_per_day is None else minutes_per_day
    with database.read() as session:  # a second or two of thinking must not hold the database's one writer
        found = study.draft_plan(session, learner, content, chosen, minutes, moment)
    with database.write() as session:
        study.set_plan(session, learner, content, found, moment)
    return RedirectResponse("/progress/plan", 303)


@router.post("/plan/drop")
def drop_plan(session: WriteSession, learner: LearnerId, now: Now) -> Response:
    study.drop_plan(session, learner, now)
    return RedirectResponse("/progress/plan", 303)


@router.post("/fit")
def fit(database: Db, work_queue: WorkQueue, learner: LearnerId, now: Now) -> Response:
    """Ask for parameters fitted to the learner's own reviews; a worker's process does the fitting."""
    with database.write() as session:
        study.ask_for_fit(session, learner, now)
    work_queue.nudge_control(queue.FIT_PARAMETERS)
    return RedirectResponse("/progress#memory", 303)


@router.get("/export")
def export(database: Db, learner: LearnerId, now: Now) -> StreamingResponse:
    """Every row of the learner as JSON lines."""

    def lines() -> Iterator[str]:
        with database.read() as session:
            yield from data.export_lines(session, learner, now)

    name = f"rankzero-{now.date().isoformat()}.jsonl"
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"}
    return StreamingResponse(lines(), media_type="application/jsonl", headers=headers)


@router.get("/delete", response_class=HTMLResponse)
def confirm(request: Request) -> HTMLResponse:
    return page(request, "progress/delete.html", {"word": data.CONFIRMATION})


@router.post("/delete")
def delete(
    request: Request, database: Db, learner: LearnerId, now: Now, confirmation: Annotated[str, Form(max_length=40)] = ""
) -> Response:
    """Delete everything of the learner, once they wrote the word."""
    if confirmation.strip().lower() != data.CONFIRMATION:
        violation = Violation("confirmation", confirmation, "Nothing was deleted.", f"the word “{data.CONFIRMATION}”")
        raise DomainError("Your data was not deleted.", [violation])
    with database.write() as session:
        lab.delete_kept(session, learner, request.app.state.artifacts)  # first: where that fails nothing is deleted
        runs = data.delete_everything(session, learner, now)
    data.delete_run_folders(request.app.state.run_folder, runs)
    return RedirectResponse("/progress?deleted=true", 303)


def _parsed(day: str) -> date:
    try:
        return date.fromisoformat(day)
    except ValueError:
        violation = Violation("day", day, "That is no date.", "a date such as 2026-12-12")
        raise DomainError("The interview date was not set.", [violation]) from None
