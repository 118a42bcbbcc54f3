"""What operators and their monitors ask: alive, ready, figures, and the API's description."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from fastapi.responses import JSONResponse, Response
from prometheus_client.exposition import choose_encoder

from app.core.web import Db, Now, WorkQueue
from app.operate import service
from app.operate.install import troubles_of
from app.operate.metrics import Figures

router = APIRouter()


def _troubles(request: Request) -> Mapping[str, str]:
    return troubles_of(request.app.state.data_folder)


Troubles = Annotated[Mapping[str, str], Depends(_troubles)]


@router.get("/healthz")
def alive() -> dict[str, str]:
    """The process answers; nothing else is asked."""
    return {"status": "ok"}


@router.get("/readyz")
def ready(request: Request, database: Db, queue: WorkQueue, now: Now, troubles: Troubles) -> JSONResponse:
    """Database, Redis, workers and their devices; 503 until all are there and none keeps dying."""
    is_ready, checks = service.readiness(database, queue, now, troubles)
    body: dict[str, Any] = {"status": "ready" if is_ready else "not ready", **checks}
    if getattr(request.state, "stranger", False):
        body = {"status": body["status"]}  # whether, not what: that is for who has the token
    return JSONResponse(body, 200 if is_ready else 503)


@router.get("/metrics")
def metrics(request: Request, database: Db, queue: WorkQueue, now: Now, troubles: Troubles) -> Response:
    figures = Figures(database, queue, now, troubles, request.app.state.latency)
    encode, content_type = choose_encoder(request.headers.get("accept", ""))
    return Response(encode(figures), media_type=content_type)
