"""Letting go of what old runs have left: their folders, and after a time of the operator's choice their events."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Collection
from datetime import timedelta
from pathlib import Path

import structlog

from app.core.db import database_time
from app.lab import work
from worker.context import Context

log = structlog.get_logger()

# as worker.folders names them; nothing else there is ours to delete
_FOLDER = re.compile(r"^(\d+)-[0-9a-f]{8}(-\d|-checkpoints|-snapshots)?$")
DAY_SECONDS = 86_400.0


def let_go(context: Context) -> None:
    """What is older than the settings say."""
    settings = context.settings
    with context.database.read() as session:
        active = work.list_active_ids(session)
    folders = remove_old_folders(settings.run_folder, settings.keep_run_folders_days * DAY_SECONDS, active)
    chunks = 0
    if settings.keep_events_days:
        with context.database.write() as session:
            before = database_time(session) - timedelta(days=settings.keep_events_days)
            chunks = work.forget_events(session, before, unless_unkept=bool(settings.artifacts))
    if folders or chunks:
        log.info("old runs let go", folders=folders, chunks=chunks)


def remove_old_folders(folder: Path, seconds: float, active: Collection[int]) -> int:
    """Remove folders of runs that nothing was written into for so long; how many they were."""
    removed = 0
    for path in folder.iterdir() if folder.is_dir() else ():
        named = _FOLDER.match(path.name)
        if named is None or path.is_symlink() or int(named[1]) in active:
            continue
        if time.time() - path.stat().st_mtime > seconds:
            shutil.rmtree(path, ignore_errors=True)
            removed += 1
    return removed
