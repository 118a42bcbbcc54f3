"""Events: what they contain, that they are JSON, and that they come in order."""

from __future__ import annotations

import json
import math
import os
import sys
import time

import pytest

from labs.probes.instrument import is_probed
from labs.probes.report import EventFile, Reporter
from labs.spec.events import StepEvent, event_line, read_event, read_events, to_json
from tests.labs.ranks import DDP, FSDP, call, parse_events, twelve_rows
from tests.support import events
from tests.support.events import step

NOT_A_NUMBER = event_line(step(1)).replace(b"1.0", b"NaN")


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
        Reporter(0, EventFile(tmp_path, 0)).emit(StepEvent, number, 1.0, 128, 0.1, 1280.0, False)
    assert [event["step"] for event in parse_events((tmp_path / "events-0.jsonl").read_text())] == [0, 1]


def test_what_json_cannot_say_is_null():
    (diverged,) = parse_events(event_line(step(1, loss=math.nan)).decode())
    assert diverged["loss"] is None
    given = {"program": "x", "list": [math.inf, 1.5, [None, -math.inf]], "fine": {"x": 0, "y": True}, "nan": math.nan}
    expected = {"program": "x", "list": [None, 1.5, [None, None]], "fine": {"x": 0, "y": True}, "nan": None}
    (result,) = parse_events(event_line(events.result(0, given)).decode())
    assert result["summary"] == expected


@pytest.mark.parametrize("event", events.one_of_each(), ids=lambda event: event.kind)
def test_what_was_written_is_read_back(event):
    assert read_event(event_line(event)) == event
    assert read_events([to_json(event)]) == [event]
    assert json.loads(event_line(event)) == to_json(event)
    absent = {name for name, value in to_json(event).items() if value is None}
    assert absent <= {"loss", "x", "y", "stage", "micro_batch"}, "what is optional and not there has no key"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"kind": "party"}, "kind"),
        ({"step": "3"}, "step"),
        ({"step": None}, "step"),
        ({"t": True}, "t"),
        ({"rank": 0.5}, "rank"),
        ({"split": {"forward": 1.0}}, "split"),
    ],
)
def test_what_is_no_event_is_refused_by_field(change, field):
    line = json.dumps({**to_json(step(1)), **change})
    with pytest.raises(ValueError, match=field):
        read_event(line)
    with pytest.raises(ValueError, match="tokens"):
        read_event(json.dumps({name: value for name, value in to_json(step(1)).items() if name != "tokens"}))


@pytest.mark.parametrize("line", [b"", b"[1]", b"null", b'{"kind": "log"', b"\xff", NOT_A_NUMBER])
def test_what_is_no_json_is_refused(line):
    with pytest.raises(ValueError, match="validation error"):
        read_event(line)


def test_what_another_release_stored_and_nobody_can_read_is_left_out():
    assert read_events([{"kind": "party"}, to_json(step(1)), {**to_json(step(2)), "new": 1}]) == [step(1), step(2)]


def test_a_line_that_is_no_utf8_is_reported_all_the_same(tmp_path):
    Reporter(0, EventFile(tmp_path, 0)).log("stderr", "no such file: caf\udce9")
    (event,) = parse_events((tmp_path / "events-0.jsonl").read_text())
    assert event["line"] == "no such file: caf\\udce9"


@pytest.mark.slow
def test_the_phases_of_a_run_in_order(run):
    """Those of a cold start, which loads torch before: see test_host."""
    phases = run(twelve_rows(DDP, 2, 3, 2)).of_kind("phase")
    assert [(event["phase"], event.get("doing")) for event in phases] == [
        ("starting", None),
        ("starting", "joining 2 ranks"),
        ("starting", "building the model"),
        ("ready", None),
        ("running", "computing the first step"),
        ("finished", None),
    ]
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
