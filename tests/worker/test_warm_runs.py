"""Runs that a worker starts from its warm host: what the record says of them, and what comes of a host that fails."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import psutil
import pytest

from app.core.clock import utc_now
from app.core.db import Database
from app.core.settings import Settings
from app.lab import results, run_page, service, work
from app.lab.models import Run
from labs.spec import parse_run_spec
from labs.spec.events import PhaseEvent
from labs.warm import WarmHost, WarmRun
from tests.labs.ranks import PROGRAMS, pid_is_alive
from tests.support.events import step
from tests.support.pace import slack_seconds
from tests.support.working import SECONDS, Working
from worker import watchdog
from worker.context import open_context
from worker.devices import Devices
from worker.launcher import can_start_warm
from worker.watchdog import Watchdog

SHORT: dict[str, Any] = {"model": "gpt-mini", "training": {"steps": 4, "sequence": 32}, "parallel": {"data": 2}}
LONG: dict[str, Any] = {**SHORT, "training": {"steps": 500, "sequence": 32}}


def hang_first(host: WarmHost, times: int, patch: pytest.MonkeyPatch) -> None:
    """The host's first ranks, as many times as told, come up and hang; on no others is the watchdog strict."""
    started, real = count(), host.start

    def start(command: Sequence[str], folder: Path, variables: Mapping[str, str], output: Path) -> WarmRun:
        hangs = next(started) < times
        patch.setattr(watchdog, "FIRST_STEP_SECONDS", 3.0 if hangs else 600.0)
        if hangs:
            at = command.index("labs.train")
            command = [*command[: at - 1], str(PROGRAMS / "hang.py"), *command[at + 1 :]]
        return real(command, folder, variables, output)

    patch.setattr(host, "start", start)


@pytest.fixture
def working(sqlite: Database, tmp_path: Path) -> Iterator[Callable[..., Working]]:
    made: list[Working] = []

    def start(spec: dict[str, Any], host: WarmHost | None) -> Working:
        made.append(Working(sqlite, tmp_path, spec, host))
        return made[-1]

    yield start
    for each in made:
        each.close()


def phases(working: Working) -> list[str | None]:
    with working.database.read() as session:
        events = results.every_event(session, working.run_id)
        return [event.doing for event in events if isinstance(event, PhaseEvent)]


def below(host: WarmHost) -> list[psutil.Process]:
    return psutil.Process(host.pid).children(recursive=True) if host.pid is not None else []


@pytest.mark.slow
def test_a_run_starts_warm_and_its_record_says_so(working: Callable[..., Working], host: WarmHost) -> None:
    run = working(SHORT, host).ended()
    assert run.status == "finished", run.failure
    assert run.launch == "warm"
    again = working(SHORT, host)
    again.ended()
    assert phases(again)[0] == "starting 2 ranks", "torch is loaded"
    assert phases(again)[1:4] == [None, "joining 2 ranks", "building the model"]


@pytest.mark.slow
def test_a_start_that_hangs_is_repeated_once_and_then_made_cold(
    working: Callable[..., Working], host: WarmHost, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    payloads = []
    for times, launch in ((1, "warm"), (2, "cold")):
        with monkeypatch.context() as patch:
            hang_first(host, times, patch)
            done = working({**SHORT, "training": {"steps": 4, "sequence": 32, "seed": times}}, host)
            run = done.ended()
        assert run.status == "finished", run.failure
        assert run.launch == launch
        assert done.steps() == [1, 2, 3, 4]
        assert len(list((tmp_path / "runs").iterdir())) == times, "what hung has left nothing"
        assert below(host) == []
        assert run.result is not None
        payloads.append(run.result["payload_bytes_per_step"])
    assert payloads[0] == payloads[1], "warm or cold, the same is sent"


@pytest.mark.slow
def test_a_host_that_is_killed_before_the_ranks_worked_costs_nothing_but_time(
    working: Callable[..., Working], host: WarmHost
) -> None:
    host.close()
    done = working(SHORT, host)
    deadline = time.monotonic() + SECONDS
    while (loading := host.pid) is None:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    os.kill(loading, signal.SIGKILL)
    run = done.ended()
    assert run.status == "finished", run.failure
    assert done.steps() == [1, 2, 3, 4]
    assert host.pid != loading


@pytest.mark.slow
def test_a_host_that_is_killed_in_the_middle_is_named(working: Callable[..., Working], host: WarmHost) -> None:
    done = working(LONG, host)
    done.wait_for_step(2)
    ranks = [each.pid for each in below(host)]
    assert host.pid is not None
    os.kill(host.pid, signal.SIGKILL)
    run = done.ended()
    assert run.status == "failed"
    assert run.failure is not None
    assert run.failure["cause"] == "host lost"
    assert f"killed after step {run.failure['step']}" in run.failure["message"]
    deadline = time.monotonic() + SECONDS
    while any(map(pid_is_alive, ranks)):
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.slow
@pytest.mark.parametrize("phase", ["loading", "starting", "running", "cold and loading", "cold and running"])
def test_cancelling_leaves_nothing_in_any_phase(
    working: Callable[..., Working], host: WarmHost, tmp_path: Path, phase: str
) -> None:
    chosen = None if phase.startswith("cold") else host
    if phase == "loading":
        host.close()
    if phase == "starting":
        while not host.is_ready:
            host.warm_up()
            time.sleep(0.02)
    # of a cold start one rank: each loads torch
    begun = working(LONG if chosen is host else {**LONG, "parallel": {"data": 1}}, chosen)
    if phase.endswith("running"):
        begun.wait_for_step(2)
    else:
        time.sleep({"loading": 0.3, "starting": 0.05}.get(phase, 1.0))
    with begun.database.write() as session:
        service.cancel_run(session, 1, begun.run_id, utc_now())
    cancelled_at = time.monotonic()
    run = begun.ended()
    took = time.monotonic() - cancelled_at
    assert run.status == "cancelled"
    assert list((tmp_path / "runs").iterdir()) == []
    alive = [each for each in psutil.Process().children(recursive=True) if _works_below(each, tmp_path)]
    assert alive == []
    assert took < 2 + slack_seconds()


def _works_below(process: psutil.Process, folder: Path) -> bool:
    try:
        return str(folder) in process.cwd() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def test_a_watchdog_waits_for_arithmetic_and_for_a_host_that_loads() -> None:
    now = [0.0]
    small, large = (
        parse_run_spec(SHORT),
        parse_run_spec({**SHORT, "model": "gpt-medium", "training": {"sequence": 512}}),
    )

    class Process:
        pid: int | None = None

    class Launched:
        process = Process()

    launched: Any = Launched()
    dogs = [Watchdog(spec, lambda: now[0]) for spec in (small, large)]
    now[0] = 60.0
    assert [dog.hangs(launched, []) for dog in dogs] == [False, False], "torch is being loaded"
    Process.pid = 1
    assert [dog.hangs(launched, []) for dog in dogs] == [False, False]
    now[0] = 85.0
    assert [dog.hangs(launched, []) for dog in dogs] == [True, False]
    assert not dogs[0].hangs(launched, [step(1)])
    now[0] = 600.0
    assert dogs[1].hangs(launched, [])


def test_only_what_a_fork_can_be_given_starts_warm() -> None:
    assert can_start_warm(parse_run_spec(SHORT), {"CUDA_VISIBLE_DEVICES": ""})
    assert not can_start_warm(parse_run_spec(SHORT), {"CUDA_VISIBLE_DEVICES": "GPU-0"})


@pytest.mark.parametrize(("warm", "devices"), [(False, Devices(True, ())), (True, Devices(False, ()))])
def test_a_host_is_kept_only_where_it_is_wanted(
    settings_for: Callable[..., Settings], warm: bool, devices: Devices
) -> None:
    assert open_context(settings_for(warm=warm), devices, "device").host is None
    assert open_context(settings_for(warm=True), Devices(True, ()), "control").host is None
    assert open_context(settings_for(warm=True), Devices(True, ()), "device").host is not None


def test_page_and_api_say_what_takes_the_time_and_how_it_was_started(sqlite: Database) -> None:
    with sqlite.write() as session:
        service.submit_run(session, 1, SHORT, None, utc_now())
        claim = work.claim_next(session, "w", lambda spec: "CPU", utc_now())
        assert claim is not None
        work.beat(session, claim, utc_now(), "warm")
        work.append_chunk(session, claim, [PhaseEvent(0.0, 0, "starting", doing="joining 2 ranks")], utc_now())
    with sqlite.read() as session:
        run = session.get_one(Run, claim.run_id)
        said = run_page.run_json(session, run)
        assert (said["status"], said["phase"], said["launch"]) == ("starting", "Joining 2 ranks", "warm")
