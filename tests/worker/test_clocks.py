"""Hosts whose clocks are apart: leases and signs of life go by the database's own."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import delete

from app.core.clock import utc_now
from app.core.db import Database, database_time
from app.lab import presence, queries, service, work
from app.lab.models import Chunk, Run, WorkerPresence
from tests.support.product import environment

SLOW_CLOCK = """import sys
from datetime import timedelta
import app.core.clock as clock
right = clock.utc_now
clock.utc_now = lambda: right() - timedelta(seconds=90)
from worker.__main__ import main
sys.exit(main(["--devices", "cpu"]))"""


def test_the_databases_time_is_now(database: Database) -> None:
    with database.read() as session:
        assert abs(database_time(session) - utc_now()) < timedelta(seconds=5)


@pytest.mark.slow
def test_a_worker_whose_clock_is_behind_keeps_its_run(postgres: Database, redis_url: str, tmp_path: Path) -> None:
    with postgres.write() as session:
        spec = {"model": "gpt-mini", "training": {"steps": 500, "sequence": 32}}
        run_id = service.submit_run(session, 1, spec, None, utc_now()).id
    url = postgres.engine.url.render_as_string(hide_password=False)
    variables = environment(tmp_path, RANKZERO_REDIS_URL=redis_url, RANKZERO_DATABASE_URL=url)
    worker = subprocess.Popen([sys.executable, "-c", SLOW_CLOCK], env=variables)
    try:
        deadline = time.monotonic() + 180
        while True:
            with postgres.write() as session:
                run, now = session.get_one(Run, run_id), database_time(session)
                present = presence.workers_present(session, now)
                assert work.give_up_on_stale(session, now) == []
            if run.status == "running" and present:
                break
            assert time.monotonic() < deadline, run.status
            time.sleep(0.1)
    finally:
        worker.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            worker.wait(120)
        worker.kill()
        with postgres.write() as session:
            for table in (Chunk, Run, WorkerPresence):
                session.execute(delete(table))


def test_killed_workers_are_forgotten_and_those_that_were_held_up_are_not(database: Database) -> None:
    now = utc_now()
    with database.write() as session:
        for name, minutes in (("killed", 11), ("held up", 2)):
            presence.announce_worker(session, name, "device", [], now - timedelta(minutes=minutes), None)
        presence.forget_workers_long_gone(session, now)
    with database.read() as session:
        assert [each.name for each in queries.list_workers(session, now - timedelta(days=1))] == ["held up"]
