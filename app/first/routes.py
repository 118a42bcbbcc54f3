"""The first minute's page."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form, Header, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from app.content.catalogue import Catalogue
from app.content.web import Content
from app.core.errors import DomainError
from app.core.templating import page
from app.core.web import Db, LearnerId, Now, ReadSession, WriteSession
from app.first import numbers, service
from app.first.finding import finding
from app.first.models import FirstGuess

router = APIRouter()

LONGEST_GUESS = 40


@router.get("/first", response_class=HTMLResponse)
def first(
    request: Request,
    session: ReadSession,
    content: Content,
    learner: LearnerId,
    ranks: Annotated[int, Query(ge=1, le=numbers.MOST_RANKS)] = 1,
    stage: Annotated[int, Query(ge=0, le=max(numbers.STAGES))] = 0,
) -> HTMLResponse:
    """The question; once a guess is locked, what it left out."""
    guess = service.find_guess(session, learner)
    return page(request, "first/first.html", _context(content, guess, ranks, stage))


@router.get("/first/states")
def states(accept_encoding: Annotated[str, Header()] = "") -> Response:
    """What each GPU holds, for every number of GPUs and every stage: `[ranks - 1][stage]`."""
    headers = {"Cache-Control": "no-store", "Vary": "Accept-Encoding"}
    if "gzip" in accept_encoding:
        zipped = {**headers, "Content-Encoding": "gzip"}
        return Response(numbers.states_gzip(), headers=zipped, media_type="application/json")
    return Response(numbers.states_json(), headers=headers, media_type="application/json")


@router.post("/first")
def lock(
    request: Request,
    database: Db,
    content: Content,
    learner: LearnerId,
    now: Now,
    guess: Annotated[str, Form(max_length=LONGEST_GUESS)],
) -> Response:
    """Lock the guess, for good."""
    try:
        with database.write() as session:
            service.lock_guess(session, learner, guess, now)
    except DomainError as error:
        said = " ".join(f"{each.message} Accepted: {each.accepted}." for each in error.violations)
        return page(request, "first/first.html", _context(content, None, 1, 0, guess, said), status=422)
    return RedirectResponse("/first", 303)


@router.post("/first/skip")
def skip(session: WriteSession, learner: LearnerId, now: Now) -> Response:
    service.skip(session, learner, now)
    return RedirectResponse("/", 303)


def _context(
    content: Catalogue, guess: FirstGuess | None, ranks: int, stage: int, typed: str = "", error: str = ""
) -> dict[str, object]:
    """Before the guess nothing in it hints at the answer."""
    asked = {
        "typed": typed,
        "error": error,
        "decades": numbers.DECADES,
        "capacity_place": numbers.place(numbers.GPU.marketing_bytes),
        "node_place": numbers.place(8 * numbers.GPU.marketing_bytes),
    }
    if guess is None or guess.guess_bytes is None:
        return {**asked, "finding": None}
    return {
        **asked,
        "finding": finding(guess.guess_bytes),
        "guess": numbers.guess_text(guess.guess_bytes),
        "guess_place": numbers.place(guess.guess_bytes),
        "answer": numbers.gb(numbers.TOTAL_BYTES).removesuffix(" GB"),
        "answer_place": numbers.place(numbers.TOTAL_BYTES),
        "state": numbers.state(ranks, stage),
        "alone": numbers.state(1, 0),
        "bytes_each": numbers.LAYOUT.total,
        "capacity_bytes": numbers.GPU.marketing_bytes,
        "over_bytes": numbers.TOTAL_BYTES - numbers.GPU.marketing_bytes,
        "top_bytes": numbers.TOP_BYTES,
        "most_ranks": numbers.MOST_RANKS,
        "cards": sum(card.deck.id == service.DECK for card in content.cards.values()),
        "deck": service.DECK,
    }
