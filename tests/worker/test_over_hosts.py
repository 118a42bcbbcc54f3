"""Which host was lost, told from what its ranks did not say."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from app.core.settings import ROOT
from app.lab.work import Claim
from labs import gang
from labs.command import CHECKPOINTS, GANG_RESTARTS
from labs.pulse import pulse_file
from labs.spec import parse_run_spec
from labs.spec.events import Event, Failure, HostEvent, PhaseEvent
from tests.support.events import step
from worker import slurm, slurm_jobs
from worker.endings import verdict
from worker.folders import let_go, variables_for_ranks
from worker.launcher import Launch, OnLeash
from worker.over_hosts import find_lost, host_lost, hosts_of_ranks, silent_hosts
from worker.pulses import Pulses
from worker.slurm import Host, Job, UnknownJob
from worker.slurm_jobs import SlurmJob

SPEC = parse_run_spec({"model": "gpt-mini", "parallel": {"data": 4}, "hosts": 2})
SEATS: list[Event] = [HostEvent(0.1, rank, f"n{1 + rank // 2}") for rank in range(4)]
KILLED = "  time      : 2026-11-21_11:27:16\n  rank      : 3 (local_rank: 1)\n  exitcode  : -9 (pid: 123)\n"


def lost_a_peer(rank: int) -> PhaseEvent:
    return PhaseEvent(5.0, rank, "failed", Failure("lost another rank", "connection closed by peer"))


def test_a_host_of_which_nobody_left_a_word_is_the_one_that_is_lost() -> None:
    assert find_lost([*SEATS, lost_a_peer(0), lost_a_peer(1)], "", SPEC) == "n2"
    assert find_lost([lost_a_peer(2)], "", SPEC) == "number 1", "none of its ranks has said where it sits"


@pytest.mark.parametrize(
    ("said", "output"),
    [
        ([], ""),  # nobody: torchrun itself was ended
        ([lost_a_peer(0), lost_a_peer(2)], ""),  # of each host somebody
        ([lost_a_peer(0)], KILLED),  # of a host that is there torchrun reports
        ([PhaseEvent(5.0, 0, "failed", Failure("out of memory", "no more"))], ""),  # a cause of its own
    ],
)
def test_no_host_is_blamed_where_anybody_says_otherwise(said: list[Event], output: str) -> None:
    assert find_lost([*SEATS, *said], output, SPEC) is None


def test_a_lost_host_is_named_with_its_ranks_and_the_step() -> None:
    failure = host_lost([*SEATS, step(7)], ("n2",), SPEC)
    assert failure.cause == "host lost"
    assert failure.message == "Host n2 was lost after step 7, and ranks 2, 3 with it."
    assert (failure.rank, failure.step) == (2, 7)


def test_one_rank_that_has_said_where_it_sits_speaks_for_its_host() -> None:
    assert hosts_of_ranks([HostEvent(0.1, 3, "n2")], SPEC) == {2: "n2", 3: "n2"}


def test_a_host_is_silent_where_all_of_its_ranks_are_and_others_are_not(tmp_path: Path) -> None:
    now = [0.0]
    for rank in range(4):
        pulse_file(tmp_path, rank).touch()
    pulses = Pulses(tmp_path, 4, lambda: now[0])

    def live(seconds: int, ranks: tuple[int, ...]) -> None:
        for _ in range(seconds):
            now[0] += 1
            for rank in ranks:
                pulse_file(tmp_path, rank).write_text(str(now[0]))
            pulses.find_silent(is_running=True)

    running = [*SEATS, step(1)]
    live(3, (0, 1, 2, 3))
    live(17, (0, 1, 2))
    assert silent_hosts(running, pulses, SPEC) == (), "one rank of n2 lives"
    live(9, (0, 1))
    assert silent_hosts(running, pulses, SPEC) == ()
    assert silent_hosts([*running, lost_a_peer(0)], pulses, SPEC) == ("n2",), "and is missed: sooner"
    live(8, (0, 1))
    assert silent_hosts(running, pulses, SPEC) == ("n2",)
    assert silent_hosts(SEATS, pulses, SPEC) == (), "torch may still be loaded there"
    assert silent_hosts([*running, lost_a_peer(2)], pulses, SPEC) == (), "a rank of it has said why it ended"
    assert silent_hosts(running, pulses, SPEC, lambda: KILLED) == (), "its torchrun has reported on a rank"
    live(17, ())
    assert silent_hosts(running, pulses, SPEC) == (), "all of them: it is us who see nothing"


@pytest.mark.parametrize(("starts", "again"), [(1, True), (2, True), (3, False)])
def test_where_a_rank_fails_all_hosts_start_again_as_often_as_is_asked_for(
    tmp_path: Path, starts: int, again: bool
) -> None:
    (tmp_path / "torchrun-0.log").write_text(KILLED)
    spec = parse_run_spec({"model": "gpt-mini", "parallel": {"data": 4}, "hosts": 2, "restarts": 2})
    process = OnLeash([sys.executable, "-c", "raise SystemExit(1)"], tmp_path, {}, tmp_path / "torchrun-1.log")
    process.wait(60)
    ending = verdict(Claim(1, "lease", spec, starts=starts), Launch(tmp_path, process, False), SEATS)
    assert ending.failure is not None
    assert ending.failure.cause == "killed"
    assert ending.again == (ending.failure.message if again else "")


def test_ranks_find_the_checkpoints_of_their_run_whoever_claims_it(tmp_path: Path) -> None:
    spec = parse_run_spec({"model": "gpt-mini", "parallel": {"data": 4}, "training": {"checkpoint_every": 2}})
    first = variables_for_ranks(tmp_path, Claim(1, "one lease", spec, identity="1-01234567"))
    again = Claim(1, "another", spec, identity="1-01234567", starts=2)
    assert variables_for_ranks(tmp_path, again) == first == {CHECKPOINTS: f"{tmp_path}/1-01234567-checkpoints"}
    over = parse_run_spec({"model": "gpt-mini", "parallel": {"data": 4}, "hosts": 2})
    assert variables_for_ranks(tmp_path, Claim(1, "x", over, starts=2)) == {GANG_RESTARTS: "1"}
    let_go(tmp_path, again, tmp_path / "1-another")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("line", "host"),
    [
        ("n1 idle 64 515000 gpu:h100:8(S:0-1)", Host("n1", "idle", 64, 515000 * 2**20, 8)),
        ("n2 down* 2 2000 (null)", Host("n2", "down*", 2, 2000 * 2**20, 0)),
        ("n3 mixed 32 1000 gpu:4", Host("n3", "mixed", 32, 1000 * 2**20, 4)),
        ("n4 allocated 8 1000 gpu:a100:2,gpu:t4:1,license:1", Host("n4", "allocated", 8, 1000 * 2**20, 3)),
    ],
)
def test_a_hosts_line_is_read(monkeypatch: pytest.MonkeyPatch, line: str, host: Host) -> None:
    said: Any = lambda *_: f"{line}\n"  # noqa: E731
    monkeypatch.setattr(slurm, "_ask", said)
    assert slurm.hosts_of("lab") == (host,)
    assert host.is_usable == (host.name != "n2")


@pytest.mark.parametrize(
    ("state", "exit_code", "cause", "starts_again"),
    [
        ("PREEMPTED", 143, "preempted", True),
        ("NODE_FAIL", 1, "host lost", True),
        ("BOOT_FAIL", 1, "host lost", True),
        ("TIMEOUT", 143, "limit reached", False),
        ("OUT_OF_MEMORY", 137, "out of memory", False),
        ("CANCELLED", 143, "cancelled in Slurm", False),
        ("FAILED", gang.NO_FOLDER, "no shared folder", False),
        ("FAILED", gang.ORPHANED, "worker lost", True),
        ("FAILED", 1, None, False),  # the ranks say why
        ("COMPLETED", 0, None, False),
    ],
)
def test_what_slurm_says_of_a_jobs_end_is_said_as_such(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    state: str,
    exit_code: int,
    cause: str | None,
    starts_again: bool,
) -> None:
    states = iter([Job("PENDING", "Resources", 0, ""), Job("RUNNING", "None", 0, "n[1-2]")])
    monkeypatch.setattr(slurm, "look_at", lambda _: next(states, Job(state, "None", exit_code, "n[1-2]")))
    monkeypatch.setattr(slurm, "expand", lambda _: ["n1", "n2"])
    monkeypatch.setattr(slurm, "down", lambda _: ["n2"])
    monkeypatch.setattr(slurm_jobs, "POLL_SECONDS", 0.01)
    job = SlurmJob("7", tmp_path, SPEC)
    deadline = time.monotonic() + 60
    while job.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.005)
    assert (job.poll() == 0) == (state == "COMPLETED")
    found = job.failure()
    assert (found and (found[0].cause, found[1])) == (cause and (cause, starts_again))
    if cause == "host lost":
        assert found is not None
        assert "host n2 of job 7" in found[0].message


def test_why_a_job_waits_is_told_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    line = "JobId=7 JobState=PENDING Reason=Nodes_required_for_job_are_DOWN,_DRAINED NodeList=(null) ExitCode=0:0"
    monkeypatch.setattr(slurm, "_ask", lambda *_: line)
    assert slurm.look_at("7") == Job("PENDING", "Nodes required for job are DOWN, DRAINED", 0, "")


def test_a_job_that_slurm_has_forgotten_is_told_from_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forgotten(_job: str) -> Job:
        raise UnknownJob

    monkeypatch.setattr(slurm, "look_at", forgotten)
    (tmp_path / gang.EXIT_CODE).write_text("0")
    job = SlurmJob("7", tmp_path, SPEC)
    deadline = time.monotonic() + 60
    while job.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.005)
    assert job.poll() == 0


_FOLLOW = """
import subprocess, sys
from labs import gang
gang.LIFELINE_SECONDS = 1.0
started = subprocess.Popen([sys.executable, "-c", "import time; print('up', flush=True); time.sleep(600)"])
sys.exit(gang._follow(started, sys.argv[1]))
"""


def test_a_job_that_nobody_looks_after_ends_what_it_started(tmp_path: Path) -> None:
    """After a minute, here after a second: as long as the lifeline is touched it goes on."""
    lifeline = tmp_path / gang.LIFELINE
    lifeline.touch()
    command = [sys.executable, "-c", _FOLLOW, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as job:
        assert job.stdout is not None
        job.stdout.readline()  # what it looks after is there
        looked_after_until = time.monotonic() + 2.5
        while time.monotonic() < looked_after_until:
            lifeline.touch()
            assert job.poll() is None
            time.sleep(0.05)
        assert job.stdout.read() == b"", "until all are gone that could write"
        assert job.wait(60) == gang.ORPHANED
