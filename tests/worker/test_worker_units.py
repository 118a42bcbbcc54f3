"""The worker's parts: files followed, failures named, devices found."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from app.core.db import Database
from app.core.limits import Limits
from app.core.queue import Queue
from app.core.settings import Settings
from app.lab import service as lab
from app.lab import work
from app.lab.records import RunFailure
from labs.spec import Fault, parse_run_spec
from labs.spec.events import STARTS_AGAIN, Event, PhaseEvent, event_line, killed_on_purpose
from tests.support.events import failed, log, step
from worker import runs
from worker.context import Context
from worker.devices import Devices, UnknownDevice, find_devices
from worker.failures import explain
from worker.presence import _look_again
from worker.pulses import Pulses
from worker.runs import take_next
from worker.smi import Gpu
from worker.tail import Follower
from worker.writer import Writer

TORCHRUN = """
Failures:
[1]:
  time      : 2026-11-21_11:27:16
  rank      : 1 (local_rank: 1)
  exitcode  : -9 (pid: 18989)  (SIGKILL)
Root Cause (first observed failure):
[0]:
  rank      : 0 (local_rank: 0)
  exitcode  : 1 (pid: 18988)
"""


def _write(path: Path, *events: Event) -> None:
    with path.open("ab") as file:
        file.write(b"".join(event_line(event) + b"\n" for event in events))


def test_new_lines_are_read_once_and_torn_ones_when_they_are_whole(tmp_path: Path) -> None:
    follower, path = Follower(tmp_path, 1), tmp_path / "events-0.jsonl"
    assert follower.read() == []
    _write(path, step(1), step(2))
    assert follower.read() == [step(1), step(2)]
    line = event_line(step(3)) + b"\n"
    with path.open("ab") as file:
        file.write(line[:20])
    assert follower.read() == []
    with path.open("ab") as file:
        file.write(line[20:])
    assert follower.read() == [step(3)]


def test_ranks_are_merged_by_time_and_speak_for_themselves(tmp_path: Path) -> None:
    _write(tmp_path / "events-0.jsonl", step(1, t=0.2), step(2, t=0.4))
    _write(tmp_path / "events-1.jsonl", log("mine", t=0.3))
    events = Follower(tmp_path, 2).read()
    assert [(event.t, event.rank) for event in events] == [(0.2, 0), (0.3, 1), (0.4, 0)]


def test_a_clock_that_steps_back_changes_no_order(tmp_path: Path) -> None:
    """An hour back in the middle: what the rank wrote first still comes first."""
    _write(tmp_path / "events-0.jsonl", step(1, t=3600.1), step(2, t=0.2), step(3, t=0.3))
    _write(tmp_path / "events-1.jsonl", log("mine", t=1.0))
    events = Follower(tmp_path, 2).read()
    assert [event.t for event in events] == [1.0, 3600.1, 0.2, 0.3]


def test_what_is_no_event_is_left_out_and_counted(tmp_path: Path) -> None:
    with (tmp_path / "events-0.jsonl").open("w") as file:
        file.write('not json\n[1,2]\n{"kind":"party","t":1}\n{"kind":"step","t":1,"step":"x"}\n' + "x" * 100_000 + "\n")
    _write(tmp_path / "events-0.jsonl", step(1))
    follower = Follower(tmp_path, 1)
    assert [event.kind for event in follower.read()] == ["step", "log"]  # the log says what was cut
    assert follower.refused == 5


def test_a_rank_that_talks_without_end_is_capped(tmp_path: Path) -> None:
    _write(tmp_path / "events-0.jsonl", *(log("x" * 5000) for _ in range(3000)))
    follower, kept = Follower(tmp_path, 1), []
    while events := follower.read():
        kept += events
    assert len(kept) <= Limits().run_log_lines
    assert all(len(event.line) <= 2000 for event in kept)


def test_a_rank_with_a_cause_of_its_own_is_the_cause(tmp_path: Path) -> None:
    events = [
        log("RuntimeError: boom", t=2.0, rank=1),
        failed(1, "RuntimeError", "boom", t=2.0),
        failed(0, "lost another rank", "peer", t=1.9),
        step(4, t=1.0),
    ]
    found = explain(events, TORCHRUN, tmp_path)
    assert (found.cause, found.rank, found.step) == ("RuntimeError", 1, 5)
    assert list(found.lines) == ["RuntimeError: boom"]


def test_a_rank_that_left_no_word_is_blamed_before_one_that_noticed(tmp_path: Path) -> None:
    events = [failed(0, "lost another rank", "peer", t=1.9)]
    stderr = tmp_path / "run" / "attempt_0" / "1" / "stderr.log"
    stderr.parent.mkdir(parents=True)
    stderr.write_text("one\ntwo\n")
    found = explain(events, TORCHRUN, tmp_path)
    assert (found.cause, found.rank) == ("killed", 1)
    assert found.message.startswith("Rank 1 was killed (SIGKILL)")
    assert list(found.lines) == ["one", "two"]


def test_a_killed_rank_that_wrote_nothing_leaves_the_word_to_who_noticed(tmp_path: Path) -> None:
    noticed, line = failed(0, "lost another rank", t=1.9), log("Connection reset by peer", t=1.9)
    found = explain([line, noticed], TORCHRUN, tmp_path)
    assert (found.rank, found.lines_rank, found.lines) == (1, 0, ("Connection reset by peer",))


def test_a_rank_that_was_killed_because_its_run_asked_for_it_is_said_to_be(tmp_path: Path) -> None:
    asked, noticed = [Fault(kind="kill", rank=1, step=5)], failed(0, "lost another rank", t=1.9)
    events = [step(4), log(killed_on_purpose(1, 5), rank=1), noticed]
    planned = explain(events, TORCHRUN, tmp_path, faults=asked)
    assert (planned.cause, planned.message) == ("killed", "Rank 1 was killed at step 5, as this run asked.")
    older = RunFailure("killed", "Rank 1 was killed (SIGKILL).", 1, 5, planned.lines, 1)
    assert older.of_run(asked).message == planned.message, "whoever stored it"
    early = explain([step(2), noticed], TORCHRUN, tmp_path, faults=asked)
    assert early.message.startswith("Rank 1 was killed (SIGKILL). Somebody"), "before it came to what was asked"


def test_what_led_to_a_restart_is_not_the_cause_of_a_later_end(tmp_path: Path) -> None:
    events = [
        failed(1, "disk full", "No space left on device", t=1.0),
        PhaseEvent(2.0, 0, phase="starting", doing=f"{STARTS_AGAIN}, restart 1 of 1"),
        failed(0, "out of memory", "CUDA out of memory", t=3.0),
    ]
    found = explain(events, "", tmp_path)
    assert (found.cause, found.rank) == ("out of memory", 0)


def test_when_torchrun_itself_fails_its_own_words_are_shown(tmp_path: Path) -> None:
    found = explain([], "line 1\nModuleNotFoundError: No module named 'torch'\n", tmp_path)
    assert found.cause == "torchrun failed"
    assert found.lines[-1].startswith("ModuleNotFoundError")


def _report(*deaths: tuple[int, int, str]) -> str:
    """torchrun's, as its 2.13 writes it: rank, exit code and time of each."""
    return "".join(
        f"  time      : 2026-11-21_{at}\n  host      : here\n  rank      : {rank} (local_rank: {rank})\n"
        f"  exitcode  : {code} (pid: 1898{rank})\n  error_file: <N/A>\n"
        for rank, code, at in deaths
    )


@pytest.mark.parametrize(
    ("report", "rank", "cause"),
    [
        (_report((0, -15, "11:27:16"), (1, -9, "11:27:16")), 1, "killed"),  # −15 is what torchrun does to the others
        (_report((0, -15, "11:27:15"), (1, -9, "11:27:16")), 1, "killed"),
        (_report((0, 1, "11:27:16"), (1, -6, "11:27:16")), 1, "signal SIGABRT"),
        (_report((0, 3, "11:27:16"), (1, -9, "11:27:46")), 0, "exit code 3"),  # 30 s later torchrun kills who is left
    ],
)
def test_the_first_to_die_is_the_cause_and_not_who_was_ended_because_of_it(
    report: str, rank: int, cause: str, tmp_path: Path
) -> None:
    found = explain([], report, tmp_path)
    assert (found.rank, found.cause) == (rank, cause)


@pytest.mark.parametrize(
    ("events", "exit_code", "message"),
    [
        ([], 1, "torchrun ended before any rank reported."),
        ([log("hello")], 1, "torchrun ended before the first step."),
        ([step(22)], 137, "torchrun was ended by SIGKILL after step 22, and its ranks with it. Somebody killed it"),
        ([step(22)], -9, "torchrun was ended by SIGKILL after step 22, and its ranks with it. Somebody killed it"),
    ],
)
def test_torchrun_alone_is_blamed_for_what_it_did(
    events: list[Event], exit_code: int, message: str, tmp_path: Path
) -> None:
    assert explain(events, "", tmp_path, exit_code).message.startswith(message)


def test_a_rank_that_gives_no_sign_of_life_is_found_by_our_own_clock(tmp_path: Path) -> None:
    now = [0.0]
    pulses = Pulses(tmp_path, 2, lambda: now[0])

    def after(seconds: float, *alive: int, is_running: bool = True) -> tuple[int, float] | None:
        for _ in range(round(seconds)):
            now[0] += 1
            for rank in alive:
                os.utime(tmp_path / f"pulse-{rank}", ns=(0, int(now[0]) + 10**9))  # whatever their clock tells
            found = pulses.find_silent(is_running)
        return found

    assert after(200) is None, "not started yet"
    for rank in (0, 1):
        (tmp_path / f"pulse-{rank}").touch()
    assert after(100, 0, 1) is None
    assert after(19, 0) is None
    now[0] += 3600  # we were held up, the machine slept: nobody's silence
    assert after(19, 0) is None
    assert after(3, 0) == (1, pytest.approx(21, abs=2))
    assert after(1, 0, is_running=False) is None, "loading torch may take longer"


GPUS = tuple(Gpu(i, f"GPU-{i}", "H200", 141 * 10**9) for i in range(2))


@pytest.mark.parametrize(
    ("devices", "device", "ranks", "visible"),
    [
        (Devices(True, GPUS), "auto", 2, "GPU-0,GPU-1"),
        (Devices(True, GPUS), "auto", 4, ""),  # more ranks than GPUs: the CPU takes it
        (Devices(True, GPUS), "cpu", 1, ""),
        (Devices(True, ()), "auto", 2, ""),
        (Devices(False, GPUS), "cuda", 1, "GPU-0"),
        (Devices(False, GPUS), "cpu", 1, None),
        (Devices(True, ()), "cuda", 1, None),
        (Devices(True, GPUS), "cuda", 4, None),
        (Devices(False, ()), "auto", 1, None),
    ],
)
def test_a_run_goes_where_it_fits_and_sees_only_that(
    devices: Devices, device: str, ranks: int, visible: str | None
) -> None:
    placement = devices.place(parse_run_spec({"model": "gpt-mini", "device": device, "parallel": {"data": ranks}}))
    assert (placement.environment["CUDA_VISIBLE_DEVICES"] if placement else None) == visible


def test_devices_that_are_not_there_are_named() -> None:
    with pytest.raises(UnknownDevice, match="there is no GPU 97 here"):
        find_devices("cuda:97")
    with pytest.raises(UnknownDevice, match="Accepted: auto, cpu, or cuda:0,1"):
        find_devices("tpu")
    assert find_devices("cpu").describe()[0]["backend"] == "gloo"


def test_gpus_that_come_and_go_are_found_again_but_not_under_a_run(
    sqlite: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(data=tmp_path, redis_url=f"unix://{tmp_path}/nothing.sock")
    context = Context(settings, sqlite, Queue(settings.redis), Devices(cpu=True, gpus=()), "device", "w", asked="auto")
    there: list[Devices | Exception] = [Devices(cpu=True, gpus=GPUS)]
    nudges: list[int] = []

    def find(asked: str) -> Devices:
        assert asked == "auto"
        if isinstance(there[-1], Exception):
            raise there[-1]
        return there[-1]

    monkeypatch.setattr("worker.presence.find_devices", find)
    monkeypatch.setattr(context.queue, "nudge_workers", lambda: nudges.append(1))
    context.run_id = 7
    _look_again(context)
    assert context.devices == Devices(cpu=True, gpus=()), "a run is on them"
    context.run_id = None
    _look_again(context)
    assert context.devices == Devices(cpu=True, gpus=GPUS)
    assert len(nudges) == 1, "a run that waits for GPUs may be taken now"
    _look_again(context)
    assert len(nudges) == 1, "nothing has changed"
    there.append(UnknownDevice("there is no GPU 1 here"))
    _look_again(context)
    assert context.devices == Devices(cpu=True, gpus=(), trouble="there is no GPU 1 here"), "the CPU's runs go on"


def test_a_run_that_cannot_be_started_says_why(database: Database, tmp_path: Path) -> None:
    settings = Settings(data=tmp_path, redis_url=f"unix://{tmp_path}/nothing.sock")
    settings.run_folder.write_text("a file where the folder of runs should be")
    context = Context(settings, database, Queue(settings.redis), Devices(cpu=True, gpus=()), "device", "w")
    with database.write() as session:
        run_id = lab.submit_run(session, 1, {"model": "gpt-mini"}, None, datetime.now(UTC)).id
    assert take_next(context) is True
    assert take_next(context) is False
    with database.read() as session:
        run = lab.find_run(session, 1, run_id)
    assert run.status == "failed"
    assert run.failure is not None
    assert run.failure["cause"] == "could not start"
    assert "torchrun could not be started" in run.failure["message"]


def test_the_first_step_is_written_at_once_and_those_after_it_in_turn(
    sqlite: Database, settings_for: Callable[..., Settings], tmp_path: Path
) -> None:
    with sqlite.write() as session:
        lab.submit_run(session, 1, {"model": "gpt-mini"}, None, datetime.now(UTC))
        claim = work.claim_next(session, "w", lambda _: "CPU", datetime.now(UTC))
    assert claim is not None
    context = Context(
        settings_for(), sqlite, Queue("unix:///nowhere/redis.sock"), Devices(cpu=True, gpus=()), "device", "w"
    )
    writer, pulses = Writer(sqlite, claim.run_id), Pulses(tmp_path, 1)
    progress = runs._Progress(Follower(tmp_path, 1), writer, pulses, claim.chunks)
    chunks = []
    for event in (log("starting"), step(1), step(2)):  # closer to each other than CHUNK_SECONDS
        _write(tmp_path / "events-0.jsonl", event)
        runs._write(context, claim, progress)
        chunks.append(progress.chunks)
    assert chunks == [1, 2, 2]
