"""A fit from the log to the parameters in use, by the process that really does it."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import insert, select

from app.core.clock import utc_now
from app.core.db import Database
from app.core.queue import Queue
from app.core.settings import Settings
from app.study import personal
from app.study.fsrs.parameters import DEFAULT
from app.study.models import ParameterFit, Review
from app.study.policy import policy_for
from tests.conftest import NOW, moment_at
from tests.support.product import environment
from tests.support.review_logs import simulate_reviews
from worker import fits
from worker.context import Context
from worker.devices import Devices

SLOW_MEMORY = (*DEFAULT[:8], 0.6, *DEFAULT[9:])  # holds grow far less from answer to answer


def _ask(database: Database, true: tuple[float, ...], cards: int) -> int:
    rows = list(simulate_reviews([f"C{each}" for each in range(cards)], 120, true, NOW, np.random.default_rng(4)))
    with database.write() as session:
        session.execute(insert(Review), sorted(rows, key=lambda row: row["reviewed_at"]))
        personal.ask(session, 1, NOW)
        fit_id = personal.claim_next(session, utc_now())
        assert fit_id is not None
        return fit_id


def _optimise(sqlite: Database, fit_id: int, data: Path) -> int:
    chosen = environment(data, RANKZERO_DATABASE_URL=str(sqlite.engine.url))
    command = [sys.executable, "-m", "worker.optimise", str(fit_id)]
    return subprocess.run(command, env=chosen, timeout=900, check=False).returncode


@pytest.mark.slow
def test_a_memory_unlike_the_default_is_fitted_judged_and_used(sqlite: Database, tmp_path: Path) -> None:
    fit_id = _ask(sqlite, SLOW_MEMORY, 100)
    assert _optimise(sqlite, fit_id, tmp_path) == 0
    with sqlite.read() as session:
        fit = session.get_one(ParameterFit, fit_id)
        policy = policy_for(session, 1, moment_at(NOW))
    assert fit.failure is None
    assert fit.held_out is not None
    assert fit.held_out >= personal.FEWEST_HELD_OUT
    assert fit.fitted_loss is not None
    assert fit.default_loss is not None
    assert fit.fitted_loss < fit.default_loss
    assert fit.is_used
    assert policy.parameters_id == fit.parameters_id
    assert policy.parameters[8] < DEFAULT[8], "growth moves towards the true one"


@pytest.mark.slow
def test_the_control_worker_starts_one_fit_at_a_time_outside_its_own_process_and_one_that_cannot_be_done_says_why(
    sqlite: Database, settings_for: Callable[..., Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANKZERO_DATABASE_URL", str(sqlite.engine.url))
    with sqlite.write() as session:
        session.add(ParameterFit(learner_id=1, asked_at=NOW, reviews=700))
    settings = settings_for()
    context = Context(settings, sqlite, Queue(settings.redis), Devices(False, ()), "control", "test")
    assert fits.start_next(context)
    assert not fits.start_next(context), "one is under way"
    assert "torch" not in sys.modules or "fsrs.optimizer" not in sys.modules
    deadline = time.monotonic() + 180
    while True:
        with sqlite.read() as session:
            fit = session.scalars(select(ParameterFit)).one()
        if fit.finished_at is not None:
            break
        assert time.monotonic() < deadline
        time.sleep(0.2)
    assert "no card was reviewed on two days" in (fit.failure or "")
    with sqlite.read() as session:
        assert policy_for(session, 1, moment_at(NOW)).parameters == DEFAULT
    (process,) = fits._running.values()
    assert process.wait(180) == 1
    assert not fits.start_next(context)
    assert not fits._running
