"""What the timeline shows: every pass of every micro-batch, in the order of the schedule, and nothing overlapping."""

from __future__ import annotations

from itertools import pairwise

import pytest

from app.theory.pipeline import order
from tests.labs.ranks import spec_of

pytestmark = pytest.mark.slow

PROBES = ["timeline", "communication"]


def pipelined(schedule: str, chunks: int = 1, micro_batches: int = 4) -> dict:
    parallel = {"pipeline": 2, "virtual_stages": chunks, "schedule": schedule}
    model = {"layers": 4, "hidden": 64, "heads": 4, "vocab": 256}
    return spec_of(parallel, model=model, training={"micro_batches": micro_batches, "steps": 3}, probes=PROBES)


@pytest.mark.parametrize(
    ("schedule", "chunks", "micro_batches"),
    [
        ("gpipe", 1, 4),
        ("1f1b", 1, 4),
        ("interleaved", 2, 4),
        ("zero-bubble", 2, 4),
        # which torch by itself refuses: fewer than stages, and no equal rounds
        ("1f1b", 1, 1),
        ("zero-bubble", 1, 1),
        ("zero-bubble", 1, 5),
    ],
)
def test_passes_are_run_in_the_schedules_order(run, schedule, chunks, micro_batches):
    done = run(pipelined(schedule, chunks, micro_batches))
    assert done.returncode == 0, done.stderr
    for rank, passes in enumerate(order(schedule, 2, micro_batches, chunks)):
        spans = [e for e in done.of_kind("span", rank) if e["step"] == 3 and e["what"] in ("F", "B", "W")]
        spans.sort(key=lambda span: span["start"])
        seen = [(span["what"], span["stage"], span["micro_batch"]) for span in spans]
        assert seen == [(each.kind, each.chunk, each.micro_batch) for each in passes]


def test_a_rank_does_one_thing_at_a_time_and_messages_take_time(run):
    done = run(pipelined("1f1b"))
    for rank in range(2):
        every = sorted((e for e in done.of_kind("span", rank) if e["step"] == 3), key=lambda span: span["start"])
        spans = [each for each in every if each["what"] != "communication"]
        assert all(early["end"] <= late["start"] + 1e-6 for early, late in pairwise(spans))
        between = [each for each in every if each["what"] == "communication"]
        assert len(between) == sum(entry["count"] for entry in done.summary(rank)["collectives"])
        begun, ended = spans[0]["start"], max(each["end"] for each in every)
        assert all(begun <= each["start"] <= each["end"] <= ended for each in between)
        assert {span["what"] for span in spans} == {"F", "B", "idle", "optimizer"}
        assert done.summary(rank)["collectives"][0]["operation"] == "send"
        assert all(0 < entry["seconds"] < 10 for entry in done.summary(rank)["collectives"])
        timed = done.summary(rank)["operations"]
        assert set(timed) == {"products", "others", "optimizer"}
        assert all(seconds > 0 for seconds in timed.values())
        passes = sum(each["end"] - each["start"] for each in spans if each["what"] in ("F", "B"))
        assert timed["products"] < passes, "operations are a part of the passes they are in"


def test_the_last_stage_cannot_begin_before_the_first_has_sent(run):
    done = run(pipelined("gpipe"))
    first, last = ([e for e in done.of_kind("span", rank) if e["step"] == 3 and e["what"] == "F"] for rank in (0, 1))
    for sent, received in zip(first, last, strict=True):
        assert sent["micro_batch"] == received["micro_batch"]
        assert sent["end"] <= received["start"]


def test_a_watched_step_is_split_up(run):
    done = run(pipelined("1f1b"))
    steps = {event["step"]: event for event in done.of_kind("step")}
    assert "split" not in steps[1]
    split = steps[3]["split"]
    assert set(split) == {"forward", "backward", "optimizer", "idle", "communication"}
    assert split["forward"] > 0
    assert split["backward"] > 0
    assert split["forward"] + split["backward"] + split["optimizer"] + split["idle"] <= steps[3]["seconds"] * 1.001


def test_without_a_pipeline_there_are_spans_as_well(run):
    done = run(spec_of({"data": 2}, training={"micro_batches": 2, "steps": 3}, probes=["timeline"]))
    spans = [(e["what"], e["micro_batch"]) for e in done.of_kind("span", 1) if e["step"] == 3]
    assert spans == [("F", 0), ("B", 0), ("F", 1), ("B", 1), ("optimizer", None)]
