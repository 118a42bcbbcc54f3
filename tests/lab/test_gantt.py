"""Spans as a picture and as a trace."""

from __future__ import annotations

import re
from dataclasses import replace

from app.content.diagrams.svg import text_width
from app.lab.folding import fold
from app.lab.gantt import chrome_trace, draw_ideal, draw_spans
from app.lab.support import example, page
from labs.spec import SUPPORT, parse_run_spec
from tests.support.events import span

TWO_RANKS = [
    span(0, "F", 1.0, 1.01),
    span(0, "idle", 1.01, 1.04),
    span(0, "B", 1.04, 1.06),
    span(1, "idle", 1.0, 1.01),
    span(1, "F", 1.01, 1.02),
    span(1, "B", 1.02, 1.04),
    span(1, "optimizer", 1.04, 1.06),
]


def test_the_picture_says_how_busy_the_ranks_were() -> None:
    drawn = draw_spans(TWO_RANKS)
    assert drawn is not None
    assert drawn.says == "Step 3 took 60 ms on 2 ranks, which were busy 66.7 % of it."
    assert drawn.head == ("Rank", "Forward, ms", "Backward, ms", "Optimizer, ms", "Waiting, ms", "Passes in order")
    assert drawn.rows == (("0", "10", "20", "0", "30", "F0 B0"), ("1", "10", "20", "20", "10", "F0 B0"))
    assert drawn.svg.count("<rect") >= len(TWO_RANKS)


def test_only_the_last_watched_step_is_drawn() -> None:
    view = fold([span(0, "F", 0.0, 0.5, number=2), *TWO_RANKS], {})
    assert view.spans == tuple(TWO_RANKS)
    assert draw_spans([]) is None


def test_a_trace_has_a_process_for_every_rank_and_microseconds() -> None:
    first, *_, last = (event for event in chrome_trace(TWO_RANKS)["traceEvents"] if event["ph"] == "X")
    assert (first["name"], first["ph"], first["pid"], first["ts"]) == ("Forward 0", "X", 0, 1_000_000.0)
    assert round(first["dur"]) == 10_000
    assert (last["name"], last["pid"], last["args"]) == ("Optimizer", 1, {"step": 3})


def test_collectives_run_below_what_is_computed_and_overlap_in_threads_of_their_own() -> None:
    reduce = span(0, "communication", 1.041, 1.05, operation="all_reduce", group="data", payload_bytes=4096)
    spans = [*TWO_RANKS, reduce, replace(reduce, start=1.045, end=1.055), replace(reduce, start=1.052, end=1.06)]
    drawn = draw_spans(spans)
    assert drawn is not None
    assert "Collectives and messages, ms" in drawn.head
    assert drawn.rows[0][5] == "19"  # 41 to 60 ms, however many of them there are
    assert "busy 66.7 %" in drawn.says
    events = chrome_trace(spans)["traceEvents"]
    moves = [event for event in events if event["ph"] == "X" and event["name"] == "all_reduce over data"]
    assert [event["tid"] for event in moves] == [1000, 1001, 1000]
    assert moves[0]["args"] == {"step": 3, "operation": "all_reduce", "group": "data", "payload_bytes": 4096}
    names = {event["tid"]: event["args"]["name"] for event in events if event["ph"] == "M" and event["pid"] == 0}
    assert names == {0: "stage 0", 1000: "communication", 1001: "communication"}


def test_the_ideal_is_drawn_of_what_can_be_drawn() -> None:
    small = {"model": {"layers": 4, "hidden": 64, "heads": 4, "vocab": 256}, "training": {"micro_batches": 4}}
    drawn = draw_ideal(parse_run_spec({**small, "parallel": {"pipeline": 2}}))
    assert drawn is not None
    assert "idle" in drawn.says
    timed = {"program": "schedule", "options": {"schedule": "interleaved"}, "parallel": {"pipeline": 4}}
    assert draw_ideal(parse_run_spec(timed)) is not None  # its last number of micro-batches, two stages a rank
    long = {**small, "training": {"micro_batches": 32}, "parallel": {"pipeline": 2}}
    assert draw_ideal(parse_run_spec(long)) is None


def test_what_is_compared_has_its_time_at_the_same_places_and_nothing_outside_the_picture() -> None:
    small = {"model": {"layers": 4, "hidden": 64, "heads": 4, "vocab": 256}, "training": {"micro_batches": 4}}
    pictures = [draw_ideal(parse_run_spec({**small, "parallel": {"pipeline": 2}})), draw_spans(TWO_RANKS)]
    axes = []
    for drawn in pictures:
        assert drawn is not None
        axes.append(re.search(r'class="ax" d="M([\d.]+) [\d.]+ L([\d.]+) ', drawn.svg))
        width = float(re.search(r'viewBox="0 0 (\d+) ', drawn.svg)[1])
        middles = re.findall(r'<text[^>]* x="([\d.]+)"[^>]*text-anchor="middle">([^<]*)', drawn.svg)
        assert middles
        assert all(float(x) + text_width(text) / 2 <= width for x, text in middles)
    assert axes[0].groups() == axes[1].groups()


def test_every_strategys_example_can_be_run() -> None:
    for row in SUPPORT:
        assert parse_run_spec(example(row)).parallel.world_size <= 8
    shown = [each["row"].id for _, rows in page()["families"] for each in rows]
    assert sorted(shown) == sorted(row.id for row in SUPPORT)
