"""Runs that are forked from a warm host: what they are, and that they end with whoever wanted them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from labs.command import environment, torchrun_command
from labs.spec import parse_run_spec
from labs.warm import WarmHost, WarmRun
from tests.labs.ranks import PROGRAMS, call, parse_events, pid_is_alive, run_cold, spec_of, warm_host
from tests.support.pace import slack_seconds

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")]

SHORT = spec_of({"data": 2, "zero": 3})
LONG = spec_of({"data": 2, "zero": 3}, training={"steps": 500, "sequence": 256, "micro_batch": 8})


def wait_until(condition: Callable[[], object], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture
def shared_host() -> WarmHost:
    """The one of this test process, which no test here may kill."""
    return warm_host()


@pytest.fixture
def own_host() -> Iterator[WarmHost]:
    """One that a test may kill."""
    host = WarmHost()
    yield host
    host.close()


def command_of(data: dict[str, Any], folder: Path, script: str | None = None) -> list[str]:
    command = torchrun_command(parse_run_spec(data), folder, folder / "logs")
    if script is not None:
        at = command.index("labs.train")
        command[at - 1 : at + 1] = [str(PROGRAMS / script)]
    return command


def begin(host: WarmHost, folder: Path, data: dict[str, Any], script: str | None = None) -> WarmRun:
    folder.mkdir(exist_ok=True)
    return host.start(command_of(data, folder, script), folder, environment(), folder / "torchrun.log")


def wait_for_step(run: WarmRun, folder: Path) -> list[int]:
    """The pids of torchrun and its ranks, once they have done a step."""
    events = folder / "events-0.jsonl"
    wait_until(lambda: events.exists() and '"step"' in events.read_text(), 60)
    assert run.poll() is None
    assert run.pid is not None
    pids = [run.pid, *(each.pid for each in psutil.Process(run.pid).children())]
    assert len(pids) == 3
    return pids


def test_ranks_are_what_those_of_a_cold_start_are(shared_host: WarmHost, tmp_path: Path) -> None:
    """Down to environment, open files, signals, limits and session; each draws numbers of its own."""
    ways: dict[str, list[dict[str, Any]]] = {}
    for way in ("cold", "warm", "warm again"):
        folder = tmp_path / "run"
        folder.mkdir()
        if way == "cold":
            ended = call(command_of(SHORT, folder, "whoami.py"), cwd=folder, stdin=subprocess.DEVNULL)
            assert ended.returncode == 0, ended.stderr
        else:
            assert begin(shared_host, folder, SHORT, "whoami.py").wait(60) == 0
        ways[way] = [json.loads((folder / f"who-{rank}.json").read_text()) for rank in (0, 1)]
        assert next(folder.glob("logs/*/attempt_0/1/stdout.log")).read_text() == "said\n"
        folder.rename(tmp_path / way)
    everyone = [rank for ranks in ways.values() for rank in ranks]
    assert len({rank.pop("pid") for rank in everyone}) == 6
    assert len({rank.pop("drawn") for rank in everyone}) == 6
    changing = ("TORCHELASTIC_ERROR_FILE", "TORCHELASTIC_RUN_ID", "MASTER_PORT")
    for rank in everyone:
        assert rank["leads_its_session"]
        assert rank["files"] == []
        for name in changing:
            rank["variables"].pop(name)
    assert ways["warm"] == ways["cold"]
    assert ways["warm again"] == ways["cold"]


def test_losses_and_events_are_those_of_a_cold_start_which_leaves_no_temporary_file(
    shared_host: WarmHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    with monkeypatch.context() as patch:
        patch.setenv("TMPDIR", str(temporary))
        cold = run_cold(SHORT)
    assert cold.returncode == 0
    assert list(temporary.iterdir()) == []
    assert begin(shared_host, tmp_path / "run", SHORT).wait(60) == 0
    events = parse_events((tmp_path / "run" / "events-0.jsonl").read_text())
    assert len(cold.losses()) == SHORT["training"]["steps"]
    assert [e["loss"] for e in events if e["kind"] == "step"] == cold.losses()
    kinds = [e["kind"] for e in events if e["kind"] not in ("phase", "log")]
    assert kinds == [e["kind"] for e in cold.events if e["rank"] == 0 and e["kind"] not in ("phase", "log")]
    phases, of_cold = _phases(events), _phases(cold.events)
    assert (phases[0], of_cold[0]) == (("starting", None), ("starting", "loading torch")), "which is already loaded"
    assert phases[1:] == of_cold[1:]


def _phases(events: list[dict[str, Any]]) -> list[tuple[str, str | None]]:
    return [(event["phase"], event.get("doing")) for event in events if event["kind"] == "phase"]


def test_a_rank_that_fails_is_reported_as_by_a_cold_start(shared_host: WarmHost, tmp_path: Path) -> None:
    """torchrun's own report, with every rank's exit code: it is what a cause is found by."""
    faults = [{"kind": "kill", "rank": 1, "step": 2}]
    assert begin(shared_host, tmp_path / "run", {**SHORT, "faults": faults}).wait(60) == 1
    said = (tmp_path / "run" / "torchrun.log").read_text()
    assert "exitcode  : -9" in said
    assert "rank      : 1" in said


def test_what_is_no_torchrun_of_ours_is_not_started(shared_host: WarmHost, tmp_path: Path) -> None:
    run = shared_host.start(["/bin/sh", "-c", f"touch {tmp_path}/made"], tmp_path, {}, tmp_path / "out")
    wait_until(lambda: run.poll() is not None)
    assert run.is_lost
    assert list(tmp_path.iterdir()) == []
    assert begin(shared_host, tmp_path / "run", spec_of({"data": 1})).wait(60) == 0, "the host goes on"


def test_a_run_ends_within_two_seconds_of_being_ended(shared_host: WarmHost, tmp_path: Path) -> None:
    run = begin(shared_host, tmp_path / "run", LONG)
    pids = wait_for_step(run, tmp_path / "run")
    began = time.monotonic()
    run.end()
    assert time.monotonic() - began < 2 + slack_seconds()
    assert not any(map(pid_is_alive, pids))
    assert run.poll() is not None


def test_a_run_whose_ranks_are_stopped_ends_all_the_same(shared_host: WarmHost, tmp_path: Path) -> None:
    run = begin(shared_host, tmp_path / "run", LONG)
    pids = wait_for_step(run, tmp_path / "run")
    for pid in pids[1:]:
        os.kill(pid, signal.SIGSTOP)
    began = time.monotonic()
    run.end()
    wait_until(lambda: not any(map(pid_is_alive, pids)), 2 + slack_seconds())
    assert time.monotonic() - began < 2.5 + slack_seconds()


def test_what_is_taken_back_while_torch_is_loaded_never_starts(own_host: WarmHost, tmp_path: Path) -> None:
    own_host.warm_up()
    run = begin(own_host, tmp_path / "run", SHORT)
    began = time.monotonic()
    run.end()
    assert time.monotonic() - began < 0.5 + slack_seconds()
    wait_until(lambda: own_host.is_ready, 60)
    assert begin(own_host, tmp_path / "next", spec_of({"data": 1})).wait(60) == 0
    assert not (tmp_path / "run" / "torchrun.log").exists()


def test_ranks_die_with_a_host_that_is_killed_and_the_next_run_has_another(own_host: WarmHost, tmp_path: Path) -> None:
    run = begin(own_host, tmp_path / "run", LONG)
    pids = wait_for_step(run, tmp_path / "run")
    assert own_host.pid is not None
    os.kill(own_host.pid, signal.SIGKILL)
    wait_until(lambda: not any(map(pid_is_alive, pids)), 5 + slack_seconds())
    assert run.wait(5 + slack_seconds()) == 137
    assert run.is_lost
    assert begin(own_host, tmp_path / "next", spec_of({"data": 1})).wait(60) == 0


def test_ranks_die_with_their_torchrun(shared_host: WarmHost, tmp_path: Path) -> None:
    run = begin(shared_host, tmp_path / "run", LONG)
    pids = wait_for_step(run, tmp_path / "run")
    os.kill(pids[0], signal.SIGKILL)
    wait_until(lambda: not any(map(pid_is_alive, pids)), 5 + slack_seconds())
    assert run.wait(5 + slack_seconds()) == 137
    assert not run.is_lost, "the host is well"


STARTER = """
import sys, time, json
from pathlib import Path
from labs.command import environment, torchrun_command
from labs.spec import parse_run_spec
from labs.warm import WarmHost
folder = Path(sys.argv[1])
host = WarmHost()
run = host.start(torchrun_command(parse_run_spec(json.loads(sys.argv[2])), folder), folder, environment(), folder / "o")
while run.pid is None:
    run.poll()
    time.sleep(0.02)
print(host.pid, run.pid, flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=["killed", "ended"])
def test_host_and_ranks_end_with_whoever_started_the_host(tmp_path: Path, number: signal.Signals) -> None:
    command = [sys.executable, "-c", STARTER, str(tmp_path), json.dumps(LONG)]
    with subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, text=True) as starter:
        assert starter.stdout is not None
        host, torchrun = map(int, starter.stdout.readline().split())
        events = tmp_path / "events-0.jsonl"
        wait_until(lambda: events.exists() and '"step"' in events.read_text(), 60)
        pids = [host, torchrun, *(each.pid for each in psutil.Process(torchrun).children())]
        starter.send_signal(number)
        wait_until(lambda: not any(map(pid_is_alive, pids)), 5 + slack_seconds())


def test_an_idle_host_leaves_and_comes_back_for_the_next_run(tmp_path: Path) -> None:
    host = WarmHost(idle_seconds=0.3)
    try:
        host.warm_up()
        first = host.pid
        assert first is not None
        wait_until(lambda: not pid_is_alive(first), 60)
        assert host.pid is None
        assert begin(host, tmp_path / "run", spec_of({"data": 1})).wait(60) == 0
    finally:
        host.close()
