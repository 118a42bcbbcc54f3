"""Whoever dies, nothing that was started remains."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from labs.command import environment, torchrun_command
from labs.leash import on_leash
from labs.spec import parse_run_spec
from tests.labs.ranks import pid_is_alive, spec_of
from tests.support.pace import slack_seconds

LEASH = on_leash([])
SLEEPING = "import os, time; print(os.getpid(), flush=True); time.sleep(60)"
SLEEP = [sys.executable, "-c", SLEEPING]
STUBBORN = [sys.executable, "-c", f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {SLEEPING}"]
# Starts a leash as the worker would, and shows the pid of what is on it.
HOLDER = [
    sys.executable,
    "-c",
    f"import subprocess, time; run = subprocess.Popen({LEASH + SLEEP!r}, stdin=subprocess.PIPE); time.sleep(60)",
]
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="only Linux kills a child with its parent")


def wait_until(condition: Callable[[], object], seconds: float = 10) -> bool:
    deadline = time.monotonic() + seconds + slack_seconds()
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.02)
    return False


@pytest.fixture
def started() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """started(command): the process. It and all it has started by the end of the test are killed, by pid."""
    processes: list[subprocess.Popen[str]] = []

    def start(command: list[str], **rest: object) -> subprocess.Popen[str]:
        streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        processes.append(subprocess.Popen(command, env=environment(), text=True, **{**streams, **rest}))
        return processes[-1]

    yield start
    for process in processes:
        if process.poll() is None:
            for each in [*psutil.Process(process.pid).children(recursive=True), process]:
                each.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


@pytest.mark.parametrize(
    ("code", "expected"), [("exit(7)", 7), ("exit(0)", 0), ("import os; os.kill(os.getpid(), 9)", 137)]
)
def test_the_exit_code_is_the_commands(started, code, expected):
    assert started([*LEASH, sys.executable, "-c", code]).wait(20 + slack_seconds()) == expected


def test_a_command_is_needed(started):
    assert started([*LEASH]).wait(20 + slack_seconds()) == 2


@pytest.mark.parametrize("number", [None, signal.SIGTERM, signal.SIGINT], ids=["end-of-file", "SIGTERM", "SIGINT"])
def test_end_of_file_and_signals_end_the_command(started, number):
    leash = started([*LEASH, *SLEEP])
    pid = int(leash.stdout.readline())
    if number is None:
        leash.stdin.close()
    else:
        leash.send_signal(number)
    assert leash.wait(10 + slack_seconds()) == 128 + signal.SIGTERM
    assert not pid_is_alive(pid)


def test_a_command_that_will_not_end_is_killed(started):
    leash = started([*LEASH, *STUBBORN])
    pid = int(leash.stdout.readline())
    leash.terminate()
    assert leash.wait(10 + slack_seconds()) == 128 + signal.SIGKILL
    assert not pid_is_alive(pid)


def test_the_command_dies_with_whoever_holds_the_leash(started):
    holder = started(HOLDER)
    pid = int(holder.stdout.readline())
    holder.kill()
    assert wait_until(lambda: not pid_is_alive(pid))


@LINUX
def test_the_command_dies_with_the_leash(started):
    leash = started([*LEASH, *SLEEP])
    pid = int(leash.stdout.readline())
    leash.kill()
    assert wait_until(lambda: not pid_is_alive(pid))


def long_run(ranks: int = 2) -> dict:
    return spec_of({"data": ranks, "zero": 3}, training={"steps": 500, "sequence": 256, "micro_batch": 8})


def wait_for_step(events: Path) -> None:
    assert wait_until(lambda: events.exists() and '"step"' in events.read_text(), 60), "no step was reported"


@pytest.mark.slow
@pytest.mark.parametrize(("number", "ranks"), [(signal.SIGKILL, 1), (signal.SIGTERM, 2)], ids=["killed", "ended"])
def test_nothing_is_left_of_a_run_whose_runner_is_gone(started, number, ranks, tmp_path):
    file = tmp_path / "spec.json"
    file.write_text(json.dumps(long_run(ranks)))
    runner = started([sys.executable, "-m", "labs.run", str(file)])
    for line in runner.stdout:
        if '"step"' in line:
            break
    pids = [each.pid for each in psutil.Process(runner.pid).children(recursive=True)]
    assert len(pids) >= 2 + ranks  # leash and torchrun besides
    runner.send_signal(number)
    assert wait_until(lambda: not any(map(pid_is_alive, pids)))
    assert runner.wait(10 + slack_seconds()) != 0
    assert "lost another rank" not in runner.stdout.read()  # nobody failed


@pytest.mark.slow
@LINUX
def test_ranks_die_with_torchrun(started, tmp_path):
    torchrun = started(torchrun_command(parse_run_spec(long_run(ranks=1)), tmp_path), cwd=os.sep)
    wait_for_step(tmp_path / "events-0.jsonl")
    pids = [each.pid for each in psutil.Process(torchrun.pid).children(recursive=True)]
    assert pids
    torchrun.kill()
    assert wait_until(lambda: not any(map(pid_is_alive, pids)))


# A parent that starts a child which is slow to get going, as ranks are that import much, and can be killed meanwhile.
LATE = """import sys, time; sys.path.insert(0, {root!r}); print(__import__("os").getpid(), flush=True); time.sleep(0.7)
from labs.lifeline import die_with_parent; die_with_parent(); time.sleep(60)"""


@LINUX
def test_a_rank_whose_torchrun_died_before_it_could_ask_does_not_go_on(started):
    late = LATE.format(root=str(Path(__file__).parents[2]))
    starts_one = f"import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {late!r}]); time.sleep(60)"
    leash = started([*LEASH, sys.executable, "-c", starts_one])
    pid = int(leash.stdout.readline())
    os.kill(psutil.Process(pid).ppid(), signal.SIGKILL)  # what the leash holds: torchrun's place
    assert wait_until(lambda: not pid_is_alive(pid), 5)


@LINUX
def test_a_rank_knows_its_parent_without_a_leash_too(started):
    late = LATE.format(root=str(Path(__file__).parents[2]))
    child = started([sys.executable, "-c", late])
    child.stdout.readline()
    time.sleep(1.2)
    assert child.poll() is None, "its parent, this test, is alive"


@pytest.mark.slow
@LINUX
@pytest.mark.parametrize("victim", ["leash", "torchrun"])
def test_nothing_is_left_of_ranks_whose_starter_is_killed_as_they_appear(started, victim, tmp_path):
    leash = started([*LEASH, *torchrun_command(parse_run_spec(long_run()), tmp_path)], cwd=os.sep)

    def ranks() -> list[int]:
        found = psutil.Process(leash.pid).children(recursive=True)
        return [
            each.pid for each in found if "labs.train" in _words(each) and "torch.distributed.run" not in _words(each)
        ]

    assert wait_until(ranks, 60)
    pids = ranks()
    os.kill(leash.pid if victim == "leash" else psutil.Process(pids[0]).ppid(), signal.SIGKILL)
    assert wait_until(lambda: not any(map(pid_is_alive, pids)))


def _words(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []
