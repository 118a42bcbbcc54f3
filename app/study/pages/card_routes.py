"""Cards outside the schedule: the list of all, one to read, and cramming, which leaves every date as it is."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Form, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from sqlalchemy.orm import Session

from app.content.catalogue import Catalogue
from app.content.web import Content
from app.core.templating import page
from app.core.web import CurrentMoment, Db, LearnerId, ReadSession
from app.decks.shelf import search_own_cards
from app.search.service import build_index, search
from app.study import service
from app.study.pages.around import suggestions
from app.study.queue import browsing
from app.study.queue.agenda import LISTED_STATES, Filter, checked_filter
from app.study.queue.marking import LONGEST_NOTE

router = APIRouter(prefix="/study")

MOST_FOUND = 500


async def _listed(content: Content, deck: str = "", concept: str = "", state: str = "", page: str = "") -> Filter:
    return checked_filter(content, deck, concept, state, page, LISTED_STATES)


Listing = Annotated[Filter, Depends(_listed)]


@router.get("/cards", response_class=HTMLResponse)
def list_cards(
    request: Request,
    session: ReadSession,
    content: Content,
    learner: LearnerId,
    moment: CurrentMoment,
    wanted: Listing,
    q: Annotated[str, Query(max_length=200)] = "",
    at: Annotated[int, Query(ge=1, le=100_000)] = 1,
) -> HTMLResponse:
    """Every card, narrowed by deck, concept, state and words."""
    shelf = browsing.browse(
        session, learner, content, moment, wanted, _matching_cards(session, learner, content, q), at
    )
    context = {
        "shelf": shelf,
        "wanted": wanted,
        "q": q,
        "states": LISTED_STATES,
        "decks": browsing.list_decks(session, learner, content),
        "concepts": content.concepts,
        "query": urlencode({**wanted.fields, **({"q": q} if q else {})}),
    }
    return page(request, "study/cards.html", context)


@router.get("/cram", response_class=HTMLResponse)
def cram(
    request: Request,
    session: ReadSession,
    content: Content,
    learner: LearnerId,
    moment: CurrentMoment,
    wanted: Listing,
    card: str = "",
    reveal: bool = False,
) -> HTMLResponse:
    """One card after another, the least known first. Nothing is rated and no date moves."""
    cards = browsing.cram(session, learner, content, moment, wanted)
    ids = [each.card.id for each in cards]
    place = ids.index(card) if card in ids else 0
    context = {
        "shown": cards[place] if cards else None,
        "place": place,
        "count": len(cards),
        "open": reveal,
        "before": ids[place - 1] if place else None,
        "after": ids[place + 1] if place + 1 < len(ids) else None,
        "wanted": wanted,
    }
    return page(request, "study/cram.html", context)


@router.get("/cards/{card_id}", response_class=HTMLResponse)
def show_card(
    request: Request, session: ReadSession, content: Content, learner: LearnerId, moment: CurrentMoment, card_id: str
) -> HTMLResponse:
    """One card to read, outside the schedule, with its history and what the learner hung on it."""
    shown = service.show(session, learner, content, card_id, moment)
    context = {
        "shown": shown,
        "history": browsing.history(session, learner, shown.card.id),
        "longest_note": LONGEST_NOTE,
        "hard": suggestions(content, shown.card) if shown.is_hard else (),
    }
    return page(request, "study/card.html", context)


@router.post("/cards/{card_id}/marks")
def mark(
    database: Db,
    content: Content,
    learner: LearnerId,
    moment: CurrentMoment,
    card_id: str,
    action: Annotated[str, Form()],
    note: Annotated[str, Form()] = "",
) -> Response:
    """Suspend, bury, flag or annotate a card from its own page."""
    with database.write() as session:
        service.mark(session, learner, content, card_id, action, moment, note)
    return RedirectResponse(f"/study/cards/{card_id}", 303)


def _matching_cards(session: Session, learner: int, content: Catalogue, q: str) -> list[str] | None:
    """The cards a search finds: own ones that hold every word, then the catalogue's, best first; None without words."""
    if not q.strip():
        return None
    groups = search(build_index(content), q, MOST_FOUND).groups
    ours = [hit.document.key for group in groups if group.key == "cards" for hit in group.hits]
    own, _ = search_own_cards(session, learner, q, MOST_FOUND)
    return [*(card.id for card in own), *ours]
