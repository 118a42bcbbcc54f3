"""The search page, its results as a fragment for the dialog, and as JSON."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import HTMLResponse

from app.content.web import Content
from app.core.templating import page
from app.core.web import LearnerId, ReadSession
from app.search import service
from app.search.index import Index
from app.search.own import with_own_cards

router = APIRouter()
api = APIRouter(prefix="/api/v1", tags=["search"])

Asked = Annotated[str, Query(max_length=1000, description="words; the last may be only begun")]


async def _index(content: Content) -> Index:
    return service.build_index(content)


SearchIndex = Annotated[Index, Depends(_index)]


def _search(index: SearchIndex, session: ReadSession, learner: LearnerId, q: Asked = "") -> service.Results:
    """What we ship and what the learner wrote."""
    return with_own_cards(session, learner, service.search(index, q), service.IN_A_GROUP)


Searched = Annotated[service.Results, Depends(_search)]


@router.get("/search", response_class=HTMLResponse)
def search_page(request: Request, results: Searched, q: Asked = "") -> HTMLResponse:
    return page(request, "search/index.html", {"results": results, "asked": q.strip()})


@router.get("/search/results", response_class=HTMLResponse)
def results(request: Request, results: Searched, q: Asked = "") -> HTMLResponse:
    """The list alone, as the dialog and the page show it while one types."""
    return page(request, "search/_results.html", {"results": results, "asked": q.strip()})


@api.get("/search")
def search(
    index: SearchIndex,
    session: ReadSession,
    learner: LearnerId,
    q: Asked,
    limit: Annotated[int, Query(ge=1, le=50)] = service.IN_A_GROUP,
) -> dict[str, Any]:
    """Cards, pages, problems, terms, formulas and errata that the words of `q` are about, and own cards, in groups."""
    return service.as_json(with_own_cards(session, learner, service.search(index, q, limit), limit))
