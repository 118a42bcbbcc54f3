"""Real ranks that end in ways that used to be blamed on something else."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from app.core.db import Database
from labs.failures import LOST_RANK, OUT_OF_MEMORY, name_cause
from labs.warm import WarmHost
from tests.support.pace import slack_seconds
from tests.support.working import Working
from worker import pulses

LONG: dict[str, Any] = {"model": "gpt-mini", "training": {"steps": 500, "sequence": 32}, "parallel": {"data": 2}}


def _ranks(host: WarmHost) -> list[psutil.Process]:
    """What was forked from the host's torchrun, in the order of ranks."""
    below = psutil.Process(host.pid).children(recursive=True)
    return sorted((each for each in below if each.name().startswith("rz rank")), key=psutil.Process.name)


@pytest.mark.slow
def test_a_stopped_rank_is_silent_and_its_run_is_ended_soon(
    sqlite: Database, host: WarmHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pulses, "SILENT_SECONDS", 6.0)
    working = Working(sqlite, tmp_path, LONG, host)
    working.wait_for_step(2)
    ranks = _ranks(host)
    ranks[1].send_signal(signal.SIGSTOP)
    stopped_at = time.monotonic()
    run = working.ended()
    took = time.monotonic() - stopped_at
    working.close()
    assert run.failure is not None
    assert (run.failure["cause"], run.failure["rank"]) == ("silent", 1)
    assert run.failure["message"].startswith(f"Rank 1 has been silent since step {run.steps_done}: ")
    assert took < 6 + 20 + slack_seconds(), took
    assert not any(each.is_running() and each.status() != psutil.STATUS_ZOMBIE for each in ranks)


@pytest.mark.slow
def test_a_torchrun_that_is_killed_after_some_steps_is_not_said_to_have_ended_before_any(
    sqlite: Database, host: WarmHost, tmp_path: Path
) -> None:
    working = Working(sqlite, tmp_path, LONG, host)
    working.wait_for_step(3)
    (torchrun,) = {each.ppid() for each in _ranks(host)}
    os.kill(torchrun, signal.SIGKILL)
    run = working.ended()
    working.close()
    assert run.failure is not None
    assert run.failure["cause"] == "torchrun killed"
    assert f"SIGKILL after step {run.steps_done}" in run.failure["message"]


def _raised(outer: type[Exception], inner: Exception, explicit: bool) -> BaseException:
    try:
        try:
            raise inner
        except Exception as error:
            if explicit:
                raise outer("it went wrong in here") from error
            raise outer("it went wrong in here")  # noqa: B904 - what is tested: nobody said `from`
    except outer as error:
        return error


@pytest.mark.parametrize("explicit", [True, False])
def test_a_cause_that_a_library_wrapped_is_found(explicit: bool) -> None:
    lost = RuntimeError("[/gloo/transport/tcp/pair.cc] Connection closed by peer [127.0.0.1]:4567")
    assert name_cause(_raised(RuntimeError, lost, explicit)) == LOST_RANK
    assert name_cause(_raised(ValueError, MemoryError(), explicit)) == OUT_OF_MEMORY
    assert name_cause(_raised(ValueError, KeyError("x"), explicit)) == "ValueError"


def test_a_cause_that_was_set_aside_on_purpose_is_not() -> None:
    error = _raised(ValueError, MemoryError(), explicit=False)
    error.__suppress_context__ = True
    assert name_cause(error) == "ValueError"
