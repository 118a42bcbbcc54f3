"""The front page."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from app.content.web import Content
from app.core import times
from app.core.charts import PERCENT_TICKS
from app.core.templating import page
from app.core.web import CurrentMoment, Db, LearnerId, Now, ReadSession, WorkQueue
from app.theory.hardware import GPUS
from app.theory.state import zero_state_bytes
from app.today import service

router = APIRouter()

FIRST_MODEL_PARAMETERS = 7e9
FIRST_RANKS = 8


@router.get("/", response_class=HTMLResponse)
def today(
    request: Request, session: ReadSession, content: Content, learner: LearnerId, moment: CurrentMoment
) -> Response:
    """The learner's day; before anything else, the first question."""
    if service.is_first_minute(session, learner):
        return RedirectResponse("/first", 303)
    context = {
        "today": service.today(session, learner, content, moment),
        "date": times.date(moment),
        "first": first_step(),
        "percent_ticks": PERCENT_TICKS,
        "content": content,
    }
    return page(request, "today/today.html", context)


@router.post("/first/run")
def run_first(database: Db, queue: WorkQueue, content: Content, learner: LearnerId, now: Now) -> Response:
    """The first question in small, on two real ranks."""
    with database.write() as session:
        run_id = service.run_first(session, learner, content, now)
    queue.nudge_workers()
    return RedirectResponse(f"/lab/runs/{run_id}", 303)


def first_step() -> dict[str, object]:
    """The question everything here starts from, computed: why a 7B model does not train on one 80 GB GPU."""

    def row(label: str, ranks: int, stage: int) -> dict[str, object]:
        parts = {
            part: zero_state_bytes(FIRST_MODEL_PARAMETERS, ranks, stage, "zero-16", part)
            for part in ("parameters", "gradients", "optimizer")
        } | {"activations": 0.0, "temporary": 0.0}
        return {"label": label, "bytes": parts, "total": sum(parts.values())}

    return {
        "parameters": FIRST_MODEL_PARAMETERS,
        "ranks": FIRST_RANKS,
        "capacity_bytes": GPUS["h100-80gb"].marketing_bytes,
        "weights_bytes": zero_state_bytes(FIRST_MODEL_PARAMETERS, 1, 0, "zero-16", "parameters"),
        "rows": [row("One GPU", 1, 0), row(f"FSDP over {FIRST_RANKS}", FIRST_RANKS, 3)],
    }
