"""Whether the product is ready, and its figures for a monitoring system."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
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


def metrics(database: Database, queue: Queue, now: datetime, troubles: Mapping[str, str]) -> str:
    """Gauges in the Prometheus text format."""
    ready, checks = readiness(database, queue, now, troubles)
    kinds = [worker["kind"] for worker in checks["workers"]]
    counts: Mapping[str, int] = {}
    with suppress(SQLAlchemyError), database.read() as session:  # a monitor must hear "not ready", not an error
        counts = lab.count_by_status(session)
    lines = [
        "# HELP rankzero_ready 1 when database, Redis, device worker, control and clock answer and none keeps dying.",
        "# TYPE rankzero_ready gauge",
        f"rankzero_ready {int(ready)}",
        "# HELP rankzero_runs Runs of the lab by status.",
        "# TYPE rankzero_runs gauge",
        *_labelled("rankzero_runs", "status", counts),
        "# HELP rankzero_workers Workers that beat recently, by kind.",
        "# TYPE rankzero_workers gauge",
        *_labelled("rankzero_workers", "kind", {kind: kinds.count(kind) for kind in ("device", "control", "beat")}),
    ]
    return "\n".join(lines) + "\n"


def _labelled(name: str, label: str, values: Mapping[str, int]) -> list[str]:
    return [f'{name}{{{label}="{key}"}} {value}' for key, value in sorted(values.items())]
