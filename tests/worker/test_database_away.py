"""The database goes away while a real run is under way: nothing of the run is lost or doubled."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, text

from app.core import db
from app.core.clock import utc_now
from app.core.db import Database
from app.core.queue import Queue
from app.core.settings import Settings
from app.lab import results, service, work
from app.lab.models import Run
from labs.spec.events import StepEvent
from labs.warm import WarmHost
from tests.support.events import step
from tests.support.working import Working
from worker import control, runs
from worker.context import Context
from worker.devices import Devices

Outage = Callable[[], AbstractContextManager[None]]
STEPS = 120  # some seconds: longer than an outage
SPEC: dict[str, Any] = {"model": "gpt-mini", "training": {"steps": STEPS, "sequence": 32}, "parallel": {"data": 1}}


@pytest.fixture
def outage(database: Database) -> Outage:
    """Real ones: SQLite's file locked for longer than anyone waits, PostgreSQL ending and refusing every session."""
    return _sqlite_locked(database) if database.engine.dialect.name == "sqlite" else _postgres_refuses(database)


def _sqlite_locked(database: Database) -> Outage:
    @contextlib.contextmanager
    def away() -> Iterator[None]:
        lock = sqlite3.connect(str(database.engine.url.database), timeout=10, isolation_level=None)
        lock.execute("BEGIN IMMEDIATE")
        yield
        lock.close()

    return away


def _postgres_refuses(database: Database) -> Outage:
    url = database.engine.url

    @contextlib.contextmanager
    def away() -> Iterator[None]:
        other = create_engine(url.set(database="postgres"), isolation_level="AUTOCOMMIT")
        with other.connect() as connection:
            connection.execute(text(f'ALTER DATABASE "{url.database}" ALLOW_CONNECTIONS false'))
            connection.execute(
                text("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = :name"),
                {"name": url.database},
            )
            try:
                yield
            finally:
                connection.execute(text(f'ALTER DATABASE "{url.database}" ALLOW_CONNECTIONS true'))
        other.dispose()

    return away


@pytest.fixture
def working(database: Database, host: WarmHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Working]:
    monkeypatch.setattr(db, "BUSY_TIMEOUT_MILLISECONDS", 100)  # ten seconds of an outage are as good as a tenth
    working = Working(database, tmp_path, SPEC, host)
    yield working
    working.close()


@pytest.mark.slow
def test_a_run_goes_on_while_the_database_is_away_even_past_its_last_step(working: Working, outage: Outage) -> None:
    working.wait_for_step(2)
    with outage():
        time.sleep(0.7)
    working.wait_for_step(8)
    with outage():
        working.wait_for_ranks_to_be_done()
        time.sleep(0.5)
        assert working.thread.is_alive(), "it waits to write down what the run came to"
    run = working.ended()
    assert run.status == "finished", run.failure
    assert working.steps() == list(range(1, STEPS + 1))


@pytest.mark.slow
def test_ranks_nobody_can_see_or_cancel_are_ended_in_the_end(
    working: Working, outage: Outage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "LONGEST_ABSENCE_SECONDS", 0.5)
    working.wait_for_step(2)
    with outage():
        time.sleep(1.5)
    run = working.ended()
    assert (run.status, (run.failure or {})["cause"]) == ("failed", "database away")
    assert working.steps() == list(range(1, len(working.steps()) + 1))


def test_after_an_outage_workers_are_given_time_to_beat_again(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with database.write() as session:
        service.submit_run(session, 1, SPEC, None, utc_now())
        claim = work.claim_next(session, "w", lambda spec: "CPU", utc_now() - timedelta(seconds=60))
        assert claim is not None
    settings = Settings(data=tmp_path, redis_url=f"unix://{tmp_path}/nothing.sock")
    context = Context(settings, database, Queue(settings.redis), Devices(False, ()), "control", "c")
    monkeypatch.setattr(control, "current", lambda: context)

    def status() -> str:
        control.sweep_runs()
        with database.read() as session:
            return session.get_one(Run, claim.run_id).status

    context.database_away_at = time.monotonic() - 10
    assert status() == "starting", "its worker could not write for as long as the database was away"
    context.database_away_at = time.monotonic() - 21
    assert status() == "queued", "for another worker"


def test_a_chunk_whose_answer_was_lost_is_not_written_twice(database: Database) -> None:
    with database.write() as session:
        service.submit_run(session, 1, SPEC, None, utc_now())
        claim = work.claim_next(session, "w", lambda spec: "CPU", utc_now())
        assert claim is not None
    for _ in range(2):
        with database.write() as session:
            assert work.append_chunk(session, claim, [step(1)], utc_now(), after=0) == 1
    with database.write() as session:
        assert work.append_chunk(session, claim, [step(2)], utc_now(), after=1) == 2
    with database.read() as session:
        assert [e.step for e in results.every_event(session, claim.run_id) if isinstance(e, StepEvent)] == [1, 2]
