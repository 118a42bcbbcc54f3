"""The learner's pages of code labs: the list, a lab with its editor, what a submission came to."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated

from fastapi import APIRouter, Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from sqlalchemy.orm import Session

from app.codelabs import puzzles, service
from app.codelabs.shown import ListedLab, ShownLab, ShownProgress, ShownPuzzle, ShownSubmission
from app.content.catalogue import Catalogue
from app.content.code_labs import CodeLab
from app.content.concept_map import named
from app.content.film.shown import Film
from app.content.web import Content
from app.core.db import Database
from app.core.errors import DomainError, NotFound, Stale
from app.core.queue import WARM_JUDGE
from app.core.templating import page
from app.core.web import Db, LearnerId, Now, ReadSession, RowId, WorkQueue
from labs.spec.code import Mode

router = APIRouter()


@router.get("/labs", response_class=HTMLResponse)
def labs(request: Request, session: ReadSession, content: Content, learner: LearnerId) -> HTMLResponse:
    """Every lab under the concept that it is about first."""
    every = service.list_labs(session, learner, content)
    groups: dict[str, list[ListedLab]] = {}
    for lab in every:
        concept = next(iter(named(content.concepts, lab.concepts)), None)
        groups.setdefault(concept.title if concept else "Other", []).append(lab)
    following = next((lab for lab in every if lab.status != "passed"), None)
    return page(request, "codelabs/index.html", {"groups": groups, "labs": every, "following": following})


@router.get("/labs/{key}", response_class=HTMLResponse)
def lab_page(
    request: Request, session: ReadSession, queue: WorkQueue, content: Content, learner: LearnerId, key: str
) -> HTMLResponse:
    """A lab: what is asked, the editor, what the newest submission came to."""
    lab = service.find_lab(content, key)
    shown = service.show_lab(session, learner, content, lab)
    queue.nudge_judges(WARM_JUDGE)
    standing, films = _progress(session, learner, content, shown.last_submission)
    return _page(request, content, lab, shown, standing, films=films)


def _progress(
    session: Session, learner_id: int, content: Catalogue, last: ShownSubmission | None
) -> tuple[ShownProgress | None, dict[str, Film]]:
    """How far what was handed in last has come, and its films once it passed."""
    if last is None:
        return None, {}
    return service.show_standing(session, learner_id, content, last.id), _films(session, learner_id, last.id)


def _films(session: Session, learner_id: int, submission_id: int) -> dict[str, Film]:
    return service.films_of(service.find_submission(session, learner_id, submission_id))


def _page(
    request: Request,
    content: Catalogue,
    lab: CodeLab,
    shown: ShownLab,
    standing: ShownProgress | None,
    *,
    films: Mapping[str, Film] = MappingProxyType({}),
    error: DomainError | None = None,
    other: str | None = None,
) -> HTMLResponse:
    concepts = named(content.concepts, lab.concepts)
    context = {"lab": shown, "submission": standing, "films": films, "counts_for": concepts, "error": error}
    return page(request, "codelabs/lab.html", context | {"other": other}, status=error.status if error else 200)


@router.get("/labs/submissions/{submission_id}", response_class=HTMLResponse)
def submission_page(
    request: Request,
    session: ReadSession,
    content: Content,
    learner: LearnerId,
    submission_id: RowId,
    is_sat: bool = False,
) -> HTMLResponse:
    """A submission as far as it has come, also while it is judged; in a sitting without what would cure it."""
    standing = service.show_standing(session, learner, content, submission_id)
    shown = service.show_lab(session, learner, content, service.find_lab(content, standing.lab))
    films = _films(session, learner, submission_id)
    return page(
        request, "codelabs/submission.html", {"lab": shown, "submission": standing, "films": films, "is_sat": is_sat}
    )


@router.get("/labs/submissions/{submission_id}/film/{which}/{rank}", response_class=HTMLResponse)
def film(
    request: Request, session: ReadSession, learner: LearnerId, submission_id: RowId, which: str, rank: int
) -> HTMLResponse:
    """One rank's reel of a run that passed (`yours`), or of the reference's, for the film strip."""
    found = service.films_of(service.find_submission(session, learner, submission_id), rank).get(which)
    if found is None:
        raise NotFound(f"Submission {submission_id} has no film {which[:20]!r} of rank {rank}.")
    return page(request, "partials/reel.html", {"film": found})


@router.post("/labs/submissions/{submission_id}/cancel")
def cancel(database: Db, learner: LearnerId, now: Now, submission_id: RowId) -> Response:
    """Take a submission back."""
    with database.write() as session:
        service.cancel(session, learner, submission_id, now)
    return RedirectResponse(f"/labs/submissions/{submission_id}", 303)


@router.get("/labs/{key}/puzzle", response_class=HTMLResponse)
def puzzle_page(
    request: Request, session: ReadSession, queue: WorkQueue, content: Content, learner: LearnerId, key: str
) -> HTMLResponse:
    """A lab's short form, for a phone."""
    lab = service.find_lab(content, key)
    shown = puzzles.show_puzzle(session, learner, content, lab)
    queue.nudge_judges(WARM_JUDGE)
    standing, films = _progress(session, learner, content, shown.last_submission)
    return _puzzle_page(request, content, lab, shown, standing, films=films)


def _puzzle_page(
    request: Request,
    content: Catalogue,
    lab: CodeLab,
    shown: ShownPuzzle,
    standing: ShownProgress | None,
    *,
    films: Mapping[str, Film] = MappingProxyType({}),
    error: DomainError | None = None,
) -> HTMLResponse:
    concepts = named(content.concepts, lab.concepts)
    context = {"puzzle": shown, "lab": {"id": lab.id}, "submission": standing, "films": films}
    context |= {"counts_for": concepts, "error": error}
    return page(request, "codelabs/puzzle.html", context, status=422 if error else 200)


@router.post("/labs/{key}/puzzle")
def submit_puzzle(
    request: Request,
    database: Db,
    queue: WorkQueue,
    content: Content,
    learner: LearnerId,
    now: Now,
    key: str,
    line: Annotated[list[str], Form()] = [],  # noqa: B006 - FastAPI copies it
    cell: Annotated[list[str], Form()] = [],  # noqa: B006
    move: Annotated[str, Form()] = "",
) -> Response:
    """Hand an arrangement in; where `move` says which line goes where, show it so moved instead."""
    lab = service.find_lab(content, key)
    puzzle = puzzles.find_puzzle(lab)
    arranged = puzzles.moved(line, move) if puzzle.head.kind == "lines" else puzzles.rows_of(puzzle, cell)
    error = None
    try:
        puzzle.program(arranged)
        if not move:
            with database.write() as session:
                submission = puzzles.submit(session, learner, lab, arranged, now).id
            queue.nudge_judges()
            return RedirectResponse(f"/labs/submissions/{submission}", 303)
    except DomainError as refused:
        error = refused
        arranged = arranged if puzzle.head.why_not(arranged) is None else puzzles.untouched(puzzle)
    with database.read() as session:
        shown = puzzles.show_puzzle(session, learner, content, lab, arranged)
    return _puzzle_page(request, content, lab, shown, None, error=error)


@router.post("/labs/{key}")
def submit(
    request: Request,
    database: Db,
    queue: WorkQueue,
    content: Content,
    learner: LearnerId,
    now: Now,
    key: str,
    code: Annotated[str, Form()] = "",
    mode: Annotated[Mode, Form()] = "run",
    over: Annotated[str | None, Form()] = None,
) -> Response:
    """Hand in what the form holds; what is refused stays in the form. What is taken has a page that looks again by
    itself: the form's own must not, for somebody may be typing there."""
    lab = service.find_lab(content, key)
    try:
        with database.write() as session:
            submission = service.submit(session, learner, lab, code, mode, now, over).id
    except DomainError as error:
        return _refused(request, database, content, learner, lab, code, error)
    queue.nudge_judges()
    return RedirectResponse(f"/labs/submissions/{submission}", 303)


def _refused(
    request: Request, database: Database, content: Catalogue, learner: int, lab: CodeLab, code: str, error: DomainError
) -> HTMLResponse:
    """The page with what was typed, and beside it the draft where that is another by now."""
    with database.read() as session:
        shown = service.show_lab(session, learner, content, lab)
    other = shown.draft if isinstance(error, Stale) else None
    return _page(request, content, lab, shown.model_copy(update={"draft": code}), None, error=error, other=other)


@router.post("/labs/{key}/hints")
def take_hint(
    request: Request,
    database: Db,
    content: Content,
    learner: LearnerId,
    now: Now,
    key: str,
    code: Annotated[str | None, Form()] = None,
    over: Annotated[str | None, Form()] = None,
) -> Response:
    """Open the next hint, and keep what the form holds; where that is not taken no hint is, either."""
    lab = service.find_lab(content, key)
    try:
        with database.write() as session:
            if code is not None:
                service.save_draft(session, learner, lab, code, now, over)
            service.take_hint(session, learner, lab, now)
    except DomainError as error:
        return _refused(request, database, content, learner, lab, code or "", error)
    return RedirectResponse(f"/labs/{lab.slug}#hints", 303)
