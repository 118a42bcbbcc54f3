"""A run's events as they come: one stream for its page, and one of chunks for whoever reads them.

Many connect at once, and routes are looked through in order: these come before those of all rooms (app/main.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Depends, Request
from sse_starlette import EventSourceResponse

from app.core.db import Database
from app.core.web import LearnerId, RowId, SeenChunk
from app.lab import reading
from app.lab.stream import Hub

router = APIRouter()
api = APIRouter()


async def _first_chunk(request: Request, learner: LearnerId, run_id: RowId, start: SeenChunk) -> int:
    """Behind which chunk of the learner's own run a stream starts."""
    hub: Hub = request.app.state.hub
    if hub.has_feed_of(learner, run_id):
        return start
    database: Database = request.app.state.database

    def check() -> None:
        with database.read() as session:
            reading.check_run(session, learner, run_id)

    await asyncio.to_thread(check)
    return start


FirstChunk = Annotated[int, Depends(_first_chunk)]


def _events(pieces: AsyncIterator[bytes]) -> EventSourceResponse:
    return EventSourceResponse(pieces, ping=15, headers={"Cache-Control": "no-store"})


async def _stream(request: Request, run_id: RowId, start: FirstChunk) -> EventSourceResponse:
    """A run's chunks as server-sent events; `Last-Event-ID` or `?after=` resumes behind that chunk."""
    hub: Hub = request.app.state.hub
    return _events(hub.stream(run_id, start))


router.add_api_route("/lab/runs/{run_id}/events", _stream, methods=["GET"], response_class=EventSourceResponse)
api.add_api_route("/runs/{run_id}/events", _stream, methods=["GET"], response_class=EventSourceResponse)


@router.get("/lab/runs/{run_id}/live", response_class=EventSourceResponse)
async def live_page(request: Request, run_id: RowId, start: FirstChunk) -> EventSourceResponse:
    """What a run's page needs, as one stream (a browser opens six connections to a host): of the chunks the
    events that it draws itself, and `part` events with the parts of the page that changed, `{"name", "html"}`."""
    hub: Hub = request.app.state.hub
    return _events(hub.stream(run_id, start, with_parts=True))
