"""The front page."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from app.content.web import Content
from app.core import times
from app.core.templating import page
from app.core.web import CurrentMoment, LearnerId, ReadSession
from app.theory.hardware import GPUS
from app.theory.state import zero_state_bytes
from app.today import service

router = APIRouter()

FIRST_MODEL_PARAMETERS = 7e9
FIRST_RANKS = 8


@router.get("/", response_class=HTMLResponse)
def today(
    request: Request, session: ReadSession, content: Content, learner: LearnerId, moment: CurrentMoment
) -> HTMLResponse:
    context = {
        "today": service.today(session, learner, content, moment),
        "date": times.date(moment),
        "first": first_step(),
        "content": content,
    }
    return page(request, "today/today.html", context)


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
