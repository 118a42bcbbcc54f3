"""The reviewer's page and its API. Every answer carries the version of the card it was given for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, NamedTuple

from fastapi import APIRouter, Form, Header, Path, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from pydantic import BaseModel, Field

from app.content.catalogue import Catalogue
from app.content.web import Content
from app.core.db import Database
from app.core.errors import DomainError, Stale
from app.core.idempotency import MAX_KEY_LENGTH, once
from app.core.moment import Moment
from app.core.templating import page, wants_fragment
from app.core.web import CurrentMoment, Db, LearnerId, ReadSession, WriteSession
from app.study import service
from app.study.checking import LARGEST_SEED, LONGEST_ANSWER
from app.study.pages import card_routes, setting_routes
from app.study.pages.around import (
    SILENCE,
    Link,
    MarkForm,
    Notice,
    QueryScope,
    ReviewForm,
    Scope,
    ScopeForm,
    new_key,
    suggestions,
    warn_of_leech,
)
from app.study.pages.export import checked_json, desk_json

router = APIRouter()
api = APIRouter(prefix="/api/v1/study", tags=["study"])


class Rating(NamedTuple):
    """A button: what is pressed, as a word, in more words, and whether the card was held."""

    level: int
    short: str
    long: str
    recall: str


RATINGS = (
    Rating(1, "Blank", "", "again"),
    Rating(2, "Partly", " wrong", "again"),
    Rating(3, "Effort", "Right, with effort", "held"),
    Rating(4, "Good", "", "held"),
    Rating(5, "Easy", "", "held"),
)


@dataclass(frozen=True)
class StudyPage:
    """What the study page shows: the desk, what it was asked for, what was just done, and how it may be rated.

    `open` says whether the answer shows, `key` names one showing's answer, `best_level` is the most it may be rated;
    `hard` leads on from a card that is forgotten again and again, and `named` is the filter in words.
    """

    desk: service.Desk
    scope: Scope
    notice: Notice
    open: bool
    key: str
    best_level: int
    hard: Sequence[Link]
    named: Sequence[str]
    ratings: Sequence[Rating] = RATINGS


def _page(
    request: Request,
    content: Content,
    desk: service.Desk,
    scope: Scope,
    *,
    reveal: bool = False,
    notice: Notice = SILENCE,
) -> HTMLResponse:
    checked = desk.card.checked if desk.card else None
    is_open = reveal or (checked is not None and checked.counts)
    view = StudyPage(
        desk=desk,
        scope=scope,
        notice=notice,
        open=is_open,
        key=new_key(),
        best_level=checked.best_level if checked else len(RATINGS),
        hard=suggestions(content, desk.card.card) if desk.card and desk.card.is_hard else (),
        named=scope.named(content),
    )
    return page(request, "study/study.html", {"view": view})


@router.get("/study", response_class=HTMLResponse)
def study(
    request: Request,
    session: ReadSession,
    content: Content,
    learner: LearnerId,
    moment: CurrentMoment,
    scope: QueryScope,
    reveal: str = "",
) -> Response:
    """The next card. Who has answered none yet begins where the first minute left off, however they came here."""
    begins = "" if request.url.query else request.app.state.begins_with(session, learner)
    if begins:
        return RedirectResponse(f"/study?deck={begins}", 303)
    desk = service.study(session, learner, content, moment, scope.more, scope.wanted)
    return _page(request, content, desk, scope, reveal=desk.card is not None and reveal == desk.card.card.id)


@router.get("/study/check", response_class=HTMLResponse)
def check(
    request: Request,
    session: ReadSession,
    content: Content,
    learner: LearnerId,
    moment: CurrentMoment,
    scope: QueryScope,
    card_id: str,
    answer: Annotated[list[str] | None, Query()] = None,
    seed: Annotated[int | None, Query(ge=0, le=LARGEST_SEED)] = None,
    elapsed_milliseconds: Annotated[int | None, Query(ge=0)] = None,
) -> HTMLResponse:
    """The same page with the machine's verdict on an answer. Nothing is recorded before it is rated."""
    desk = service.study(session, learner, content, moment, scope.more, scope.wanted)
    if desk.card is None or desk.card.card.id != card_id:
        notice = Notice(f"{card_id} was already answered, here or in another tab.")
        return _page(request, content, desk, scope, notice=notice)
    shown = service.checked(desk.card, ",".join(filter(None, answer or [])), seed, elapsed_milliseconds)
    return _page(request, content, replace(desk, card=shown), scope)


@router.post("/study/reviews")
def review(
    request: Request,
    database: Db,
    content: Content,
    learner: LearnerId,
    moment: CurrentMoment,
    given: Annotated[ReviewForm, Form()],
) -> Response:
    """Record the answer; htmx gets the next card in the same reply, read in the same transaction."""
    request_key = request.headers.get("idempotency-key") or given.key
    scope, notice, desk = given.scope(content), SILENCE, None
    try:
        with database.write() as session:
            made = service.submit_review(
                session,
                learner,
                content,
                card_id=given.card_id,
                level=given.level,
                version=given.version,
                moment=moment,
                elapsed_milliseconds=given.elapsed_milliseconds,
                seed=given.seed,
                answer=given.answer,
                request_key=request_key and request_key[:MAX_KEY_LENGTH],
            )
            notice = warn_of_leech(session, content, made)
            if wants_fragment(request):
                desk = service.study(session, learner, content, moment, scope.more, scope.wanted)
    except Stale as error:
        with database.read() as session:
            counted = service.find_answer(session, learner, given.card_id, given.version, request_key)
        again = counted is not None and counted.is_same_request
        notice = Notice(f"Your answer to {given.card_id} was counted." if again else error.message)
    if desk is None:
        return _next(request, database, content, learner, moment, scope, notice)
    return _page(request, content, desk, scope, notice=notice)


@router.post("/study/undo")
def undo(
    request: Request,
    database: Db,
    content: Content,
    learner: LearnerId,
    moment: CurrentMoment,
    given: Annotated[ScopeForm, Form()],
) -> Response:
    try:
        with database.write() as session:
            card_id = service.undo(session, learner, moment.now)
        notice = Notice(f"Took back the answer to {card_id}.")
    except DomainError as error:
        notice = Notice(error.message)
    return _next(request, database, content, learner, moment, given.scope(content), notice)


@router.post("/study/marks")
def mark(
    request: Request,
    database: Db,
    content: Content,
    learner: LearnerId,
    moment: CurrentMoment,
    given: Annotated[MarkForm, Form()],
) -> Response:
    """Suspend, bury, flag or annotate the card on the page; a card that stays there stays open."""
    try:
        with database.write() as session:
            said = service.mark(session, learner, content, given.card_id, given.action, moment, given.note)
        notice = Notice(said, given.card_id, given.action)
    except Stale as error:
        notice = Notice(error.message)
    return _next(request, database, content, learner, moment, given.scope(content), notice, given.revealed)


def _next(
    request: Request,
    database: Database,
    content: Catalogue,
    learner: int,
    moment: Moment,
    scope: Scope,
    notice: Notice,
    revealed: str = "",
) -> Response:
    if not wants_fragment(request):
        return RedirectResponse(scope.address, 303)
    with database.read() as session:
        desk = service.study(session, learner, content, moment, scope.more, scope.wanted)
    reveal = desk.card is not None and revealed == desk.card.card.id
    return _page(request, content, desk, scope, notice=notice, reveal=reveal)


router.include_router(card_routes.router)
router.include_router(setting_routes.router)


class CheckRequest(BaseModel):
    """An answer to what a card asks at a seed; without one, at the seed that is shown now."""

    card_id: str
    seed: int | None = Field(None, ge=0, le=LARGEST_SEED)
    answer: str = Field(max_length=LONGEST_ANSWER)
    elapsed_milliseconds: int | None = Field(None, ge=0)


class ReviewRequest(BaseModel):
    """An answer to a card, for the version that was shown."""

    card_id: str
    level: int = Field(ge=1, le=5)
    version: int = Field(ge=0)
    elapsed_milliseconds: int | None = Field(None, ge=0)
    seed: int | None = Field(None, ge=0, le=LARGEST_SEED)
    answer: str | None = Field(None, max_length=LONGEST_ANSWER)


@api.get("/next")
def next_card(
    session: ReadSession, content: Content, learner: LearnerId, moment: CurrentMoment, scope: QueryScope
) -> dict[str, Any]:
    """The card to answer now, or null; of a deck, a concept or a state, if one is named."""
    return desk_json(service.study(session, learner, content, moment, scope.more, scope.wanted))


@api.post("/check")
def check_answer(
    session: ReadSession, content: Content, learner: LearnerId, moment: CurrentMoment, given: CheckRequest
) -> dict[str, Any]:
    """The machine's verdict on an answer. Nothing is recorded before it is rated."""
    shown = service.show(session, learner, content, given.card_id, moment)
    return checked_json(service.checked(shown, given.answer, given.seed, given.elapsed_milliseconds))


@api.post("/reviews", status_code=201)
def submit(
    session: WriteSession,
    content: Content,
    learner: LearnerId,
    moment: CurrentMoment,
    review: ReviewRequest,
    idempotency_key: Annotated[str | None, Header()] = None,
) -> dict[str, Any]:
    """Record an answer. A stale version is a 409 and changes nothing."""

    def work() -> dict[str, Any]:
        made = service.submit_review(
            session,
            learner,
            content,
            card_id=review.card_id,
            level=review.level,
            version=review.version,
            moment=moment,
            elapsed_milliseconds=review.elapsed_milliseconds,
            seed=review.seed,
            answer=review.answer,
            request_key=idempotency_key,
        )
        answered = {
            "review_id": made.id,
            "due_at": made.due_at.isoformat(),
            "verdict": made.verdict,
            "rating": made.rating,
        }
        return {**answered, "next": desk_json(service.study(session, learner, content, moment))}

    return once(session, learner, idempotency_key, "/api/v1/study/reviews", moment.now, work, review.model_dump())[0]


@api.get("/reviews/{card_id}/{version}")
def find_answer(
    session: ReadSession,
    learner: LearnerId,
    card_id: str,
    version: Annotated[int, Path(ge=0, le=2**31 - 1)],
    key: Annotated[str | None, Query(max_length=MAX_KEY_LENGTH)] = None,
) -> dict[str, Any]:
    """Whether a showing was answered: what to ask when a review got no reply. `same_request` where `key` made it."""
    found = service.find_answer(session, learner, card_id, version, key)
    if found is None:
        return {"recorded": False}
    return {"recorded": True, "same_request": found.is_same_request, "level": found.level, "undone": found.is_undone}


@api.post("/undo")
def take_back(session: WriteSession, content: Content, learner: LearnerId, moment: CurrentMoment) -> dict[str, Any]:
    """Take back the newest answer."""
    card_id = service.undo(session, learner, moment.now)
    return {"card_id": card_id, "next": desk_json(service.study(session, learner, content, moment))}
