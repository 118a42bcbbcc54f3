"""Interviews as pages. The server owns the clock: every touch after the deadline closes the sitting first."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Form, Request
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from app.codelabs import service as codelabs
from app.content.catalogue import Catalogue
from app.content.coding import CodingRound
from app.content.web import Content
from app.core import times
from app.core.db import Database
from app.core.errors import DomainError, Stale, problem_details
from app.core.queue import WARM_JUDGE
from app.core.templating import page
from app.core.web import CurrentMoment, Db, LearnerId, Now, ReadSession, RowId, WorkQueue
from app.interview import answering, closing, generated, offers, pages, service, sitting_page

router = APIRouter()
router.include_router(generated.router)  # first: its address is none of an interview's


async def _met(request: Request) -> set[str]:
    """The rubric points a form ticks."""
    return {str(value) for name, value in (await request.form()).multi_items() if name == "met"}


MetPoints = Annotated[set[str], Depends(_met)]


def _touch(database: Database, content: Catalogue, learner: int, sitting_id: int, now: datetime) -> bool:
    """Close the sitting if its time is up, and grade it if it only waited for the judge, in a transaction of its own;
    returns whether it is closed now."""
    with database.write() as session:
        sitting = service.find_sitting(session, learner, sitting_id)
        closing.close_if_over(session, content, sitting, now)
        closing.settle(session, content, sitting, now)
        return sitting.closed_at is not None


@router.get("/interview", response_class=HTMLResponse)
def interviews(request: Request, session: ReadSession, content: Content, learner: LearnerId, now: Now) -> HTMLResponse:
    return page(request, "interview/index.html", pages.index(session, learner, content, now))


@router.get("/interview/{key}", response_class=HTMLResponse)
def interview(
    request: Request, database: Db, queue: WorkQueue, content: Content, learner: LearnerId, now: Now, key: str
) -> Response:
    """The open sitting of this interview, else what to expect of it."""
    with database.read() as session:
        found, drawn = offers.find_offer(session, learner, content, key)
        opened = service.find_running(session, learner, now)
        why = codelabs.why_not_here(session, request.app.state.code_labs) if isinstance(found, CodingRound) else ""
    if opened is not None and opened.interview_id == found.id:
        return RedirectResponse(f"/interview/sittings/{opened.id}", 303)
    if isinstance(found, CodingRound) and not why:
        queue.nudge_judges(WARM_JUDGE)  # its sandboxes are there when the first program comes
    more = {"was_sat": drawn is not None, "instead": why}
    return page(request, "interview/intro.html", pages.intro(content, found, opened) | more)


@router.post("/interview/{key}")
def start(request: Request, database: Db, content: Content, learner: LearnerId, now: Now, key: str) -> Response:
    """Start a sitting; of a generated interview one with the numbers it had."""
    with database.write() as session:
        found, drawn = offers.find_offer(session, learner, content, key)
        if isinstance(found, CodingRound):
            drawn = offers.draw_tasks(session, learner, content, found, request.app.state.code_labs)
            found = offers.made_of(content, found.id, drawn)
        sitting = service.start(session, learner, content, found, now, drawn)
    return RedirectResponse(f"/interview/sittings/{sitting.id}", 303)


@router.get("/interview/sittings/{sitting_id}", response_class=HTMLResponse)
def sitting(
    request: Request,
    session: ReadSession,
    content: Content,
    learner: LearnerId,
    now: Now,
    sitting_id: RowId,
    part: str = "",
) -> HTMLResponse:
    """A sitting under way, or the scorecard of one that is closed, once its candidate said what to expect of it."""
    found = closing.as_it_stands(session, content, service.find_sitting(session, learner, sitting_id), now)
    if found.closed_at is not None and found.scorecard is None:
        return page(request, "interview/judging.html", pages.judging(content, found))
    if found.closed_at is not None and found.expected_level is None:
        return page(request, "interview/expectation.html", pages.expectation(content, found))
    if found.closed_at is not None:
        return page(request, "interview/scorecard.html", pages.scorecard(session, content, found))
    return page(
        request, "interview/sitting.html", {"shown": sitting_page.show_part(session, content, found, part, now)}
    )


@router.post("/interview/sittings/{sitting_id}/answers")
def save(
    request: Request,
    database: Db,
    queue: WorkQueue,
    content: Content,
    learner: LearnerId,
    moment: CurrentMoment,
    sitting_id: RowId,
    part: Annotated[str, Form()],
    answers: Annotated[list[str] | None, Form(alias="answer")] = None,
    final: Annotated[bool, Form()] = False,
    board: Annotated[str | None, Form()] = None,
    over: Annotated[str | None, Form()] = None,
) -> Response:
    """Save a draft (the page does so while one types), or give the answer: of several boxes, those that are ticked.
    What is written says which version it was typed `over`: where another was saved since, nothing is."""
    answer = ", ".join(answers or ())
    quiet = "application/json" in request.headers.get("accept", "")
    now = moment.now
    _touch(database, content, learner, sitting_id, now)
    try:
        with database.write() as session:
            found = service.find_sitting(session, learner, sitting_id)
            saved = answering.save_answer(session, content, found, part, answer, final, now, board, over)
    except DomainError as error:
        return _refused(request, database, content, learner, now, sitting_id, part, answer, error)
    if final:
        queue.nudge_judges()  # for a program
    if quiet:
        return JSONResponse(
            {"saved_at": times.clock_seconds(saved.row.saved_at, moment.zone), "version": saved.version}
        )
    with database.read() as session:
        found = service.find_sitting(session, learner, sitting_id)
        following = sitting_page.next_part(session, content, found, part) if final else part
    if following is None:  # there is nothing left to ask, and nothing that could be changed
        with database.write() as session:
            closing.close(session, content, service.find_sitting(session, learner, sitting_id), now, closing.ANSWERED)
        return RedirectResponse(f"/interview/sittings/{sitting_id}", 303)
    return RedirectResponse(f"/interview/sittings/{sitting_id}?part={following}", 303)


@router.post("/interview/sittings/{sitting_id}/hints")
def open_hint(
    request: Request,
    database: Db,
    content: Content,
    learner: LearnerId,
    now: Now,
    sitting_id: RowId,
    part: Annotated[str, Form()],
    hint: Annotated[int, Form()],
    answers: Annotated[list[str] | None, Form(alias="answer")] = None,
    over: Annotated[str | None, Form()] = None,
) -> Response:
    """Open a hint at its price, and save what is typed so far as a draft; where that is not taken no hint is."""
    _touch(database, content, learner, sitting_id, now)
    answer = ", ".join(answers or ())
    try:
        with database.write() as session:
            found = service.find_sitting(session, learner, sitting_id)
            answering.open_hint(session, content, found, part, hint, now)
            if answers:
                answering.save_answer(session, content, found, part, answer, False, now, over=over)
    except DomainError as error:
        return _refused(request, database, content, learner, now, sitting_id, part, answer, error)
    return RedirectResponse(f"/interview/sittings/{sitting_id}?part={part}", 303)


def _refused(
    request: Request,
    database: Database,
    content: Catalogue,
    learner: int,
    now: datetime,
    sitting_id: int,
    part: str,
    answer: str,
    error: DomainError,
) -> Response:
    """What was not taken, and why, with the answer that came with it; beside it the one that it would have replaced."""
    if "application/json" in request.headers.get("accept", ""):
        return JSONResponse(problem_details(error), error.status, media_type="application/problem+json")
    if error.status == 409 and not isinstance(error, Stale):
        return page(
            request, "interview/late.html", {"error": error, "sitting_id": sitting_id, "answer": answer}, status=409
        )
    with database.read() as session:
        found = service.find_sitting(session, learner, sitting_id)
        shown = sitting_page.show_part(session, content, found, part, now, typed=answer, error=error)
    return page(request, "interview/sitting.html", {"shown": shown}, status=error.status)


@router.post("/interview/sittings/{sitting_id}/runs")
def run(
    request: Request,
    database: Db,
    queue: WorkQueue,
    content: Content,
    learner: LearnerId,
    now: Now,
    sitting_id: RowId,
    part: Annotated[str, Form()],
    answer: Annotated[str, Form()] = "",
    over: Annotated[str | None, Form()] = None,
) -> Response:
    """Run the visible checks of a program, and keep it as a draft."""
    _touch(database, content, learner, sitting_id, now)
    try:
        with database.write() as session:
            found = service.find_sitting(session, learner, sitting_id)
            answering.try_program(session, content, found, part, answer, now, over)
    except DomainError as error:
        return _refused(request, database, content, learner, now, sitting_id, part, answer, error)
    queue.nudge_judges()
    return RedirectResponse(f"/interview/sittings/{sitting_id}?part={part}#results", 303)


@router.post("/interview/sittings/{sitting_id}/finish")
def finish(
    database: Db, queue: WorkQueue, content: Content, learner: LearnerId, now: Now, sitting_id: RowId
) -> Response:
    if not _touch(database, content, learner, sitting_id, now):
        with database.write() as session:
            closing.close(session, content, service.find_sitting(session, learner, sitting_id), now, closing.ENDED)
    queue.nudge_judges()  # for a program that ended with it
    return RedirectResponse(f"/interview/sittings/{sitting_id}", 303)


@router.post("/interview/sittings/{sitting_id}/expectation")
def expect(
    database: Db,
    content: Content,
    learner: LearnerId,
    now: Now,
    sitting_id: RowId,
    level: Annotated[str, Form()] = "",
) -> Response:
    """The level that is expected, before the debrief is shown."""
    _touch(database, content, learner, sitting_id, now)
    with database.write() as session:
        service.expect(session, service.find_sitting(session, learner, sitting_id), level)
    return RedirectResponse(f"/interview/sittings/{sitting_id}", 303)


@router.post("/interview/sittings/{sitting_id}/judgements/{part}")
def judge(
    database: Db, content: Content, learner: LearnerId, now: Now, sitting_id: RowId, part: str, met: MetPoints
) -> Response:
    _touch(database, content, learner, sitting_id, now)
    with database.write() as session:
        found = service.find_sitting(session, learner, sitting_id)
        closing.judge(session, content, found, part, met, now)
    return RedirectResponse(f"/interview/sittings/{sitting_id}#part-{part}", 303)
