"""Real Redis, real Celery worker, real torchrun, on SQLite and PostgreSQL."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest

from app.core.clock import utc_now
from app.core.db import Database, open_database
from app.core.queue import Queue
from app.lab import presence, results, service, work
from app.lab.models import ENDED, Run
from labs.spec.events import PhaseEvent, StepEvent
from tests.conftest import empty
from tests.support.product import environment
from tests.support.redis import running_redis

pytestmark = pytest.mark.slow

SMALL: dict[str, Any] = {
    "model": "gpt-mini",
    "training": {"steps": 6, "sequence": 32},
    "parallel": {"data": 2, "zero": 3},
}
LONG: dict[str, Any] = {
    "model": "gpt-mini",
    "training": {"steps": 500, "sequence": 32},
    "parallel": {"data": 2, "zero": 0},
}


STEPS = 100
SHORT_OF_LONG: dict[str, Any] = {**LONG, "training": {"steps": STEPS, "sequence": 32}}
SECONDS = 180.0  # a busy machine is slow, not wrong


class Lab:
    """Worker processes and the database they work for. Tests leave their workers to the next."""

    def __init__(self, database: Database, redis_url: str, folder: Path) -> None:
        self.database = database
        self.queue = Queue(redis_url)
        self.environment = environment(
            folder,
            RANKZERO_REDIS_URL=redis_url,
            RANKZERO_DATABASE_URL=database.engine.url.render_as_string(hide_password=False),
        )
        self.workers: list[subprocess.Popen[bytes]] = []
        self.log = folder / "worker.log"

    def with_workers(self, count: int) -> list[subprocess.Popen[bytes]]:
        """So many that live: some are started, or told to stop."""
        self.workers = [worker for worker in self.workers if worker.poll() is None]
        surplus, self.workers = self.workers[count:], self.workers[:count]
        for worker in surplus:
            worker.terminate()
        for worker in surplus:
            worker.wait(SECONDS)
        while len(self.workers) < count:
            with self.log.open("ab") as log:
                command = [sys.executable, "-m", "worker", "--devices", "cpu"]
                self.workers.append(subprocess.Popen(command, env=self.environment, stdout=log, stderr=log))
        return self.workers

    def submit(self, spec: dict[str, Any], nudges: int = 1) -> int:
        with self.database.write() as session:
            run_id = service.submit_run(session, 1, spec, None, utc_now()).id
        for _ in range(nudges):
            self.queue.nudge_workers()
        return run_id

    def run(self, run_id: int) -> Run:
        with self.database.read() as session:
            found = session.get(Run, run_id)
            assert found is not None
            return found

    def wait(self, run_id: int, until: Callable[[Run], bool]) -> Run:
        deadline = time.monotonic() + SECONDS
        while not until(run := self.run(run_id)):
            assert time.monotonic() < deadline, (
                f"run {run_id} is {run.status}, step {run.steps_done}\n{self.log.read_text()[-3000:]}"
            )
            time.sleep(0.05)
        return run

    def ended(self, run_id: int) -> Run:
        return self.wait(run_id, lambda run: run.status in ENDED)

    def wait_until_present(self, pids: set[int]) -> None:
        deadline = time.monotonic() + SECONDS
        while True:
            with self.database.read() as session:
                present = {int(each.name.rpartition("-")[2]) for each in presence.workers_present(session, utc_now())}
            if pids <= present:
                return
            assert time.monotonic() < deadline, self.log.read_text()[-3000:]
            time.sleep(0.1)

    def ranks(self) -> list[psutil.Process]:
        """Processes of runs, of this worker or orphaned from it: they work in the run's folder."""
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.cwd().startswith(f"{self.environment['RANKZERO_DATA']}/runs/"):
                    found.append(process)
        return found

    def wait_for_no_ranks(self) -> None:
        deadline = time.monotonic() + SECONDS
        while alive := self.ranks():
            assert time.monotonic() < deadline, alive
            time.sleep(0.1)


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def lab(
    request: pytest.FixtureRequest, sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Lab]:
    folder = tmp_path_factory.mktemp("lab")
    if request.param == "sqlite":
        shutil.copy(sqlite_template, folder / "rankzero.sqlite3")
        database = open_database(f"sqlite:///{folder / 'rankzero.sqlite3'}")
    else:
        database = request.getfixturevalue("postgres")
    with running_redis(folder / "redis") as url:
        lab = Lab(database, url, folder)
        try:
            yield lab
            lab.with_workers(0)
            lab.wait_for_no_ranks()
        finally:
            for worker in lab.workers:
                worker.kill()
    if request.param == "sqlite":
        database.engine.dispose()
    else:
        empty(database)


# What is a matter of the worker's own processes: which database keeps the record does not change it. (What is written
# where a run is given back is tested on both in lab/test_runs.)
of_processes = pytest.mark.parametrize("lab", ["sqlite"], indirect=True)


def test_runs_that_waited_for_a_worker_are_found_without_a_nudge(lab: Lab) -> None:
    lab.with_workers(0)
    run_id = lab.submit(SMALL, nudges=0)
    lab.with_workers(1)
    assert lab.ended(run_id).status == "finished"


@of_processes
def test_a_worker_that_is_told_to_stop_gives_its_run_back_once(lab: Lab) -> None:
    (worker,) = lab.with_workers(1)
    run_id = lab.submit(LONG)
    lab.wait(run_id, lambda run: run.steps_done >= 2)
    assert lab.ranks()
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(SECONDS) == 0
    run = lab.run(run_id)
    assert (run.status, run.steps_done, run.attempts) == ("queued", 0, 1)
    assert run.phase == "The worker was stopped while this run was under way. It starts again by itself."
    lab.wait_for_no_ranks()
    with lab.database.read() as session:
        assert presence.workers_present(session, utc_now()) == []
    (worker,) = lab.with_workers(1)
    lab.wait(run_id, lambda run: run.steps_done >= 2)
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(SECONDS) == 0
    run = lab.run(run_id)
    assert (run.status, run.attempts) == ("failed", 2)
    assert run.failure is not None
    assert run.failure["cause"] == "worker stopped"
    with lab.database.read() as session:
        seen = list(results.every_event(session, run_id))
    begins = [n for n, event in enumerate(seen) if isinstance(event, PhaseEvent) and event.phase == "queued"]
    assert len(begins) == 1
    for part in (seen[: begins[0]], seen[begins[0] :]):
        steps = [event.step for event in part if isinstance(event, StepEvent)]
        assert steps == list(range(1, len(steps) + 1)), "each start from its first step, nothing twice"


@of_processes
def test_a_worker_that_is_killed_takes_its_ranks_along_and_another_takes_its_run(lab: Lab) -> None:
    (worker,) = lab.with_workers(1)
    run_id = lab.submit(SHORT_OF_LONG)
    lab.wait(run_id, lambda run: run.steps_done >= 2)
    os.kill(worker.pid, signal.SIGKILL)
    worker.wait()
    lab.wait_for_no_ranks()
    with lab.database.write() as session:
        assert work.give_up_on_stale(session, utc_now() + timedelta(seconds=25)) == [run_id]
    assert lab.run(run_id).status == "queued"
    lab.with_workers(1)
    run = lab.ended(run_id)
    assert (run.status, run.attempts, run.steps_done) == ("finished", 2, STEPS), run.failure
    assert run.result is not None
    assert run.result["steps"] == STEPS


@of_processes
def test_a_run_that_is_taken_away_is_ended_by_the_worker_that_had_it(lab: Lab) -> None:
    lab.with_workers(1)
    run_id = lab.submit(LONG)
    lab.wait(run_id, lambda run: run.steps_done >= 2)
    with lab.database.write() as session:
        work.give_up_on_stale(session, utc_now() + timedelta(seconds=25))
    lab.wait(run_id, lambda run: run.attempts == 2 and run.steps_done >= 2)
    assert len({process.cwd() for process in lab.ranks()}) == 1, "those of its first start are gone"
    with lab.database.write() as session:
        service.cancel_run(session, 1, run_id, utc_now())
    assert lab.ended(run_id).status == "cancelled"


def test_a_run_is_carried_out_once_and_measures_what_theory_says(lab: Lab) -> None:
    pids = {worker.pid for worker in lab.with_workers(2)}
    lab.wait_until_present(pids)
    run = lab.ended(lab.submit(SMALL, nudges=5))
    assert run.status == "finished", run.failure
    assert run.result is not None
    assert run.result["payload_bytes_per_step"] == run.theory["payload_bytes_per_step"]
    assert run.result["model_state_bytes"] == pytest.approx(run.theory["model_state_bytes"], rel=0.01)
    with lab.database.read() as session:
        steps = [event.step for event in results.every_event(session, run.id) if isinstance(event, StepEvent)]
    assert steps == [1, 2, 3, 4, 5, 6]
