"""The page of devices and queue, and what an operator does there."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse
from starlette.responses import Response

from app.core.db import database_time
from app.core.templating import page
from app.core.web import CurrentMoment, Db, LearnerId, ReadSession, WorkQueue
from app.lab import presence, reading
from app.lab.devices import devices_page

router = APIRouter()


@router.get("/lab/devices", response_class=HTMLResponse)
def devices(request: Request, session: ReadSession, learner: LearnerId, moment: CurrentMoment) -> HTMLResponse:
    # by the clock that workers beat by
    shown = devices_page(session, database_time(session))
    under_way = reading.count_active(session, learner)
    return page(request, "lab/devices.html", {"shown": shown, "zone": moment.zone, "under_way": under_way})


@router.post("/lab/workers/{name}/drain")
def drain(database: Db, name: str) -> Response:
    """Have a worker take no more runs; it finishes the one it has."""
    return _set(database, name, is_drained=True)


@router.post("/lab/workers/{name}/resume")
def resume(database: Db, queue: WorkQueue, name: str) -> Response:
    """Have a drained worker take runs again."""
    reply = _set(database, name, is_drained=False)
    queue.nudge_workers()
    return reply


def _set(database: Db, name: str, *, is_drained: bool) -> Response:
    with database.write() as session:
        presence.drain_worker(session, name, is_drained, database_time(session))
    return RedirectResponse("/lab/devices", 303)
