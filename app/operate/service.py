"""Whether the product is ready."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from app.core.db import Database
from app.core.queue import Queue
from app.lab import service as lab


def readiness(
    database: Database, queue: Queue, now: datetime, troubles: Mapping[str, str]
) -> tuple[bool, dict[str, Any]]:
    """Database, Redis and workers with their devices; ready when all answer, also the control worker and the clock.

    `troubles` says which parts keep dying: while one does, the product is not ready, whatever answers just now.
    """
    try:
        with database.read() as session:
            session.execute(text("SELECT 1"))
            workers = [
                {
                    "name": each.name,
                    "kind": each.kind,
                    "devices": each.devices,
                    "seen_at": each.seen_at.isoformat(),
                    "run": each.run_id,
                }
                for each in lab.workers_present(session, now)
            ]
        answers, detail = True, "ok"
    except SQLAlchemyError as error:
        workers, answers, detail = [], False, str(error.__cause__ or error)
    redis_answers = queue.answers()
    has_device = any(worker["kind"] == "device" for worker in workers)
    checks: dict[str, Any] = {
        "database": detail,
        "redis": "ok" if redis_answers else "does not answer",
        "workers": workers,
        "control": any(worker["kind"] == "control" for worker in workers),
        "beat": any(worker["kind"] == "beat" for worker in workers),
        "troubles": dict(troubles),
    }
    ready = answers and redis_answers and has_device and checks["control"] and checks["beat"] and not troubles
    return ready, checks
