"""Saying that a worker is there: a line in the database, every two seconds, from a thread of its own."""

from __future__ import annotations

import threading
import time

import structlog
from sqlalchemy.exc import SQLAlchemyError

from app.core.db import Database, database_time
from app.lab import service as lab
from worker.context import Context

log = structlog.get_logger()


def announce_forever(context: Context) -> threading.Thread:
    """Start announcing; the thread ends with the process or when `stopping` is set."""
    thread = threading.Thread(target=_announce, args=(context,), daemon=True, name="presence")
    thread.start()
    return thread


def _announce(context: Context) -> None:
    devices = context.devices.describe() if context.kind == "device" else []
    while True:
        try:
            with context.database.write() as session:
                lab.announce_worker(
                    session, context.name, context.kind, devices, database_time(session), context.run_id
                )
        except SQLAlchemyError as error:
            context.database_away_at = time.monotonic()
            log.warning("presence not written", error=str(error))
        if context.stopping.wait(lab.HEARTBEAT_SECONDS):
            return


def is_alive(database: Database, host: str) -> bool:
    """Whether a process of ours on this host said lately that it is there: a container's health."""
    with database.read() as session:
        return any(f"-{host}-" in worker.name for worker in lab.workers_present(session, database_time(session)))


def retire(context: Context) -> None:
    """Take the worker's line back."""
    try:
        with context.database.write() as session:
            lab.retire_worker(session, context.name)
    except SQLAlchemyError as error:
        log.warning("worker not retired", error=str(error))
