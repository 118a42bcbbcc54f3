"""Events: what they contain, that they are JSON, and that they come in order."""

from __future__ import annotations

import json
import math
import os
import sys
import time

import pytest

from labs.probes.instrument import is_probed
from labs.probes.report import EventFile, Reporter, valid_json
from tests.labs.ranks import DDP, FSDP, call, parse_events, twelve_rows


def test_every_twentieth_step_is_probed_and_the_only_one():
    assert [step for step in range(1, 41) if is_probed(step, 40)] == [2, 3, 23]
    assert [step for step in (1, 2) if is_probed(step, 2)] == [2]
    assert is_probed(1, 1)


def test_time_counts_from_when_the_run_was_started(monkeypatch, tmp_path):
    monkeypatch.setenv("RANKZERO_RUN_STARTED_AT", str(time.time() - 100))
    Reporter(3, EventFile(tmp_path, 3)).log("stderr", "hello")
    (event,) = parse_events((tmp_path / "events-3.jsonl").read_text())
    assert event == {"t": event["t"], "kind": "log", "rank": 3, "stream": "stderr", "line": "hello"}
    assert event["t"] == pytest.approx(100, abs=5)


def test_events_are_appended_line_by_line(tmp_path):
    for number in range(2):  # a second file object, as a restarted rank would have
        Reporter(0, EventFile(tmp_path, 0)).emit("step", step=number)
    assert [event["step"] for event in parse_events((tmp_path / "events-0.jsonl").read_text())] == [0, 1]


def test_what_json_cannot_say_is_null():
    given = {"loss": math.nan, "list": [math.inf, 1.5, (None, -math.inf)], "fine": {"x": 0, "y": True}}
    expected = {"loss": None, "list": [None, 1.5, [None, None]], "fine": {"x": 0, "y": True}}
    assert valid_json(given) == expected


@pytest.mark.slow
def test_the_phases_of_a_run_in_order(run):
    phases = run(twelve_rows(DDP, 2, 3, 2)).of_kind("phase")
    assert [event["phase"] for event in phases] == ["starting", "ready", "running", "finished"]
    assert {event["rank"] for event in phases} == {0}


@pytest.mark.slow
def test_steps_are_reported_once_with_the_global_batch(run):
    done = run(twelve_rows(FSDP, 2, 3, 2))
    steps = done.of_kind("step")
    assert [(event["rank"], event["step"]) for event in steps] == [(0, 1), (0, 2), (0, 3), (0, 4)]
    assert {event["tokens"] for event in steps} == {12 * 32}
    assert [event["probed"] for event in steps] == [False, True, True, False]
    for event in steps:
        assert event["tokens_per_second"] == pytest.approx(event["tokens"] / event["seconds"])


@pytest.mark.slow
def test_throughput_is_that_of_steps_without_probes(run):
    done = run(twelve_rows(FSDP, 2, 3, 2))
    assert done.summary()["tokens_per_second"] == pytest.approx(done.of_kind("step")[3]["tokens_per_second"])


@pytest.mark.slow
def test_every_rank_sums_up(run):
    done = run(twelve_rows(FSDP, 4, 1, 3))
    for rank in range(4):
        summary = done.summary(rank)
        assert summary["steps"] == 4
        assert summary["world_size"] == 4
        assert (summary["backend"], summary["device"], summary["state_layout"]) == ("gloo", "cpu", "fp32")
        assert (summary["first_loss"], summary["final_loss"]) == (done.losses()[0], done.losses()[-1])
        assert summary["peak_bytes"]["total"] > summary["model_state_bytes"]["total"]


@pytest.mark.slow
def test_probes_that_are_off_find_nothing(run):
    done = run(twelve_rows(FSDP, 2, 3, 2, probes=[]))
    assert done.of_kind("memory") == done.of_kind("communication") == []
    assert not any(event["probed"] for event in done.of_kind("step"))
    for key in ("model_state_bytes", "peak_bytes", "payload_bytes_per_step", "wire_bytes_per_step", "collectives"):
        assert done.summary()[key] is None


@pytest.mark.slow
def test_the_runner_streams_all_ranks_in_order_of_time(run):
    done = run(twelve_rows(FSDP, 4, 1, 3))
    assert done.returncode == 0, done.stderr
    times = [event["t"] for event in done.events]
    assert times == sorted(times)
    assert 0 < times[0] < 30  # from the start of the run, not of the epoch
    assert {event["rank"] for event in done.events} == {0, 1, 2, 3}


def test_the_runner_refuses_a_bad_spec_at_once():
    done = call([sys.executable, "-m", "labs.run", "-"], input=json.dumps({"model": "gpt-giant"}))
    assert done.returncode == 2
    assert done.stderr.startswith("model:")
    assert done.stdout == ""


def test_nothing_that_starts_a_run_loads_torch():
    modules = "labs.command, labs.run, labs.leash, labs.lifeline, labs.train, labs.console, labs.failures"
    code = f"import sys, {modules}; sys.exit('torch' in sys.modules)"
    assert call([sys.executable, "-c", code], cwd=os.sep).returncode == 0
