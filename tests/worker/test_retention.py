"""What is let go of old runs, and what never is."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from sqlalchemy import func, select

from app.core.clock import utc_now
from app.core.db import Database
from app.core.queue import Queue
from app.core.settings import Settings
from app.lab import service, work
from app.lab.models import Chunk, Run
from tests.support import events
from worker.context import Context
from worker.devices import Devices
from worker.retention import let_go


def test_old_folders_and_events_go_and_results_stay(
    database: Database, settings_for: Callable[..., Settings], tmp_path: Path
) -> None:
    now = utc_now()
    with database.write() as session:
        for days in (40, 1, 40):
            service.submit_run(session, 1, {"model": "gpt-mini"}, None, now)
            claim = work.claim_next(session, "w", lambda _: "CPU", now)
            assert claim is not None
            work.append_chunk(session, claim, [events.step(1)], now)
            work.end_run(session, claim, "failed", now - timedelta(days=days), work.RunFailure("killed", "x"))
        session.get_one(Run, 3).status = "running"
    settings = settings_for(keep_events_days=30)
    names = {
        "1-0123abcd": 40,
        "1-0123abcd-2": 40,
        "1-9abcdef0-checkpoints": 40,
        "2-0123abcd": 1,
        "3-0123abcd": 40,
        "mine": 400,
    }
    for name, days in names.items():
        folder = settings.run_folder / name
        folder.mkdir(parents=True)
        (folder / "spec.json").write_text("{}")
        os.utime(folder, (time.time() - days * 86_400,) * 2)
    queue = Queue(settings.redis)
    let_go(Context(settings, database, queue, Devices(cpu=False, gpus=()), "control", "c"))
    assert sorted(path.name for path in settings.run_folder.iterdir()) == ["2-0123abcd", "3-0123abcd", "mine"]
    with database.read() as session:
        assert list(session.scalars(select(Chunk.run_id).order_by(Chunk.run_id))) == [2, 3]
        assert session.scalar(select(func.count(Run.id))) == 3
        assert session.get_one(Run, 1).failure is not None
