"""Keeping what ended runs have left in a store of the operator's choice (app.core.store), and letting go of it.

Only where there is such a store: what tells a run of the database loads theory, which is a good part of a start.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import structlog
from sqlalchemy.orm import Session

from app.core.db import database_time
from app.core.release import release
from app.core.store import Store
from app.lab import artifacts
from app.lab.artifacts import Left
from labs.checkpoints import named_for_checkpoints, open_newest
from worker.context import Context

log = structlog.get_logger()

MOST_AT_ONCE = 20  # so that nothing else waits for long


def keep(context: Context) -> int:
    """Keep what runs have left that ended since the last time, and let go of what was kept for long enough; how many
    runs were kept. Where the store does not answer all of it waits for the next time."""
    settings, kept = context.settings, 0
    try:
        store = Store(settings.artifacts)
        with context.database.read() as session:
            now = database_time(session)
            for run in artifacts.list_unkept(session, MOST_AT_ONCE):
                files = dict(_keep_run(session, store, run, settings.run_folder, now))
                with context.database.write() as writing:
                    artifacts.note_kept(writing, run.run_id, files)
                kept += 1
        if settings.keep_artifacts_days:
            _let_go(context, store, now - timedelta(days=settings.keep_artifacts_days))
    except Exception as error:
        log.warning("artifacts could not be kept; they wait", place=settings.artifacts, error=str(error))
    return kept


def _keep_run(session: Session, store: Store, run: Left, runs: Path, now: datetime) -> Iterator[tuple[str, int]]:
    """Each file that is kept now, with its bytes."""
    for name, pieces in artifacts.contents_of(session, run, release(), now):
        store.write(path := f"{run.identity}/{name}", pieces)
        yield name, store.size(path)
    checkpoints = named_for_checkpoints(runs, run.identity)
    if (checkpoint := open_newest(checkpoints)) is not None:
        name = f"run-{run.run_id}-checkpoint-step-{checkpoint.step}.tar"
        store.write(path := f"{run.identity}/{name}", checkpoint.pieces())
        yield name, store.size(path)


def _let_go(context: Context, store: Store, before: datetime) -> None:
    with context.database.read() as session:
        old = artifacts.list_kept_before(session, before)
    for run_id, folder in old:
        store.remove(folder)
        with context.database.write() as session:
            artifacts.note_kept(session, run_id, {})
