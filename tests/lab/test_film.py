"""The watched step of a run as film, and as a trace."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from app.lab.film import film_of, step_of, strip_beside
from app.lab.film.expected import expected
from app.lab.film.pieces import without
from app.lab.folding import fold
from app.lab.trace import chrome_trace
from app.lab.view import RunView
from labs.spec import RunSpec, parse_run_spec
from labs.spec.events import DetailEvent, Event, Held, LayerPass, SpanEvent
from tests.support.events import span

SHAPE = {"layers": 2, "hidden": 64, "heads": 4, "vocab": 256}
TWO_RANKS = [
    span(0, "F", 1.0, 1.01),
    span(0, "idle", 1.01, 1.04),
    span(0, "B", 1.04, 1.06),
    span(1, "idle", 1.0, 1.01),
    span(1, "F", 1.01, 1.02),
    span(1, "B", 1.02, 1.04),
    span(1, "optimizer", 1.04, 1.06),
]
LAYER, ROOT = 4000, 1000  # bytes


def spec_of(parallel: dict[str, Any], **training: Any) -> RunSpec:
    return parse_run_spec({"model": SHAPE, "training": training, "parallel": parallel})


def call(rank: int, operation: str, phase: str, start: float, end: float, size: int, held: float = 0.0) -> SpanEvent:
    """A collective of two data ranks; `held`: until when its buffer is there."""
    lives = [Held("temporary", size, start, held)] if held else None
    rest = {"operation": operation, "phase": phase, "group": "data", "group_size": 2, "wire_bytes": size // 2}
    return span(rank, "communication", start, end, payload_bytes=size, held=lives, **rest)


def fsdp(late: float = 0.0) -> list[Event]:
    """One step of FSDP on two ranks and two layers, from second 1 on; rank 1 comes `late` to every collective."""
    events: list[Event] = []
    for rank in range(2):
        lag = late if rank else 0.0
        gathers = [(ROOT, 1.00), (LAYER, 1.01), (LAYER, 1.04)]
        events += [call(rank, "all_gather", "forward", at + lag, at + 0.009, size, at + 0.03) for size, at in gathers]
        again = [(LAYER, 1.07), (LAYER, 1.11)]
        events += [call(rank, "all_gather", "backward", at + lag, at + 0.009, size) for size, at in again]
        reduces = [(LAYER, 1.10), (LAYER, 1.14), (ROOT, 1.15)]
        events += [call(rank, "reduce_scatter", "backward", at + lag, at + 0.009, size) for size, at in reduces]
        events += [span(rank, "F", 1.0, 1.07), span(rank, "B", 1.07, 1.16), span(rank, "optimizer", 1.16, 1.2)]
        layers = [(0, "F", 1.02, 1.04), (1, "F", 1.05, 1.06), (1, "B", 1.08, 1.1), (0, "B", 1.12, 1.14)]
        waits = [[each.start, each.end] for each in events if isinstance(each, SpanEvent) and each.rank == rank][:8]
        memory = {"parameters": [100, 100], "temporary": [0, LAYER]}
        passes = [LayerPass(*each) for each in layers]  # type: ignore[arg-type]
        events.append(DetailEvent(1.2, rank, 3, 1.0, 1.2, passes, waits, [1.0, 1.01], memory, 1))  # type: ignore[arg-type]
    return events


def watched(events: list[Event]) -> RunView:
    return fold(events, {})


def test_every_collective_is_named_by_what_the_layout_moves_with_it() -> None:
    film = film_of(spec_of({"data": 2, "zero": 3}), watched(fsdp()))
    assert film is not None
    assert [row.name for row in film.reel.rows] == [
        "All-gather, embedding and head",
        "All-gather, layer 0",
        "All-gather, layer 1",
        "All-gather, layer 1 again",
        "Reduce-scatter, layer 1",
        "All-gather, layer 0 again",
        "Reduce-scatter, layer 0",
        "Reduce-scatter, embedding and head",
    ]
    passes = [each.name for each in film.reel.moments if each.kind != "communication"]
    assert passes == [
        "Forward, embedding",
        "Forward, layer 0",
        "Forward, layer 1",
        "Forward, head and loss",
        "Backward, head and loss",
        "Backward, layer 1",
        "Backward, layer 0",
        "Backward, embedding",
        "Optimizer step",
    ]


def test_a_collective_is_lit_on_all_its_ranks_and_holds_its_memory() -> None:
    film = film_of(spec_of({"data": 2, "zero": 3}), watched(fsdp(late=0.004)))
    assert film is not None
    gather = next(each for each in film.reel.moments if each.name == "All-gather, layer 0")
    assert gather.on == ((0, "5", "4.5"), (1, "7", "2.5"))
    assert gather.says.startswith(
        "Each rank keeps 1/2 and fetches the rest: 4 kB whole, around a ring this rank sends 2 kB."
    )
    assert gather.says.endswith("This rank came 4 ms before rank 1, the last.")
    assert gather.ledger == "all_gather forward data"
    assert gather.sent == "Sent so far 2.5 kB of 13 kB, 2 of 8 over."  # the root unit's half and its own
    assert film.reel.moments[-1].sent == "Sent so far 13 kB of 13 kB, 8 of 8 over."
    assert gather.bump.startswith("M50 ")  # 10 of 200 ms
    assert "H200" in gather.bump  # and gone after another 30
    assert film.lanes[0].late
    assert not film.lanes[1].late
    assert re.fullmatch(r"Rank 0 waits for rank 1 for [\d.]+ % of the step", film.title)


@pytest.mark.parametrize(("late", "waiting"), [(0.0, [0.0, 0.0]), (0.004, [0.032, 0.0])])
def test_what_a_rank_waits_for_the_last_is_no_communication(late: float, waiting: list[float]) -> None:
    """Eight collectives of 9 ms, in each of which rank 0 sits for `late` before rank 1 comes."""
    spec = spec_of({"data": 2, "zero": 3})
    view = watched(fsdp(late=late))
    step = step_of(spec, view.spans, view.details)
    assert step is not None
    strip = strip_beside(spec, step, step.seconds)
    assert [each["waiting"] for each in strip.by_rank] == pytest.approx(waiting)
    assert [each["communication"] for each in strip.by_rank] == pytest.approx([8 * (0.009 - late)] * 2)
    assert sum(strip.terms.values()) == pytest.approx(step.seconds)


def test_what_is_drawn_is_what_was_computed_and_moved() -> None:
    view = watched(fsdp())
    step = step_of(spec_of({"data": 2, "zero": 3}), view.spans, view.details)
    film = film_of(spec_of({"data": 2, "zero": 3}), view, 1)
    assert step is not None
    assert film is not None
    assert step.seconds == pytest.approx(0.2)
    drawn = re.search(r'class="communication" d="([^"]*)"', film.lanes[1].svg)
    assert drawn is not None
    assert drawn[1].count("M") == len(film.reel.rows) == 8
    # forward 20 + 10 ms, backward 20 + 20, head 10 before and behind its gather, update 40
    busy = {
        tone: sum(end - start for kind, start, end in step.ranks[1].busy if kind == tone)
        for tone in ("forward", "backward", "optimizer")
    }
    assert busy["optimizer"] == pytest.approx(0.04)
    assert busy["forward"] >= 0.03
    assert film_of(spec_of({"data": 2, "zero": 3}), view, 2) is None
    assert film_of(spec_of({"data": 2, "zero": 3}), watched([])) is None


def test_the_update_hides_no_gradients_for_it_waits_for_them() -> None:
    """The end of the last reduce-scatter is stamped in the midst of the update, which began at 160 ms."""
    late = [
        replace(each, end=1.19) if isinstance(each, SpanEvent) and each.operation and each.start == 1.15 else each
        for each in fsdp()
    ]
    film = film_of(spec_of({"data": 2, "zero": 3}), watched(late))
    assert film is not None
    last = film.reel.moments[-2]
    assert (last.name, last.end) == ("Reduce-scatter, embedding and head", 160)
    assert film.reel.rows[-1].hidden == "0 %"


def test_theory_hides_what_the_layout_lets_it_hide() -> None:
    """Compute alone takes theory's time, but for the first gather and the last reduce."""
    view = watched(fsdp())
    spec = spec_of({"data": 2, "zero": 3})
    step = step_of(spec, view.spans, view.details)
    assert step is not None
    found = expected(spec, step)
    assert found is not None
    work = sum(each.end_seconds - each.start_seconds for each in found.ranks[0])
    assert work == pytest.approx(step.ranks[0].busy_seconds)
    assert work < found.seconds < step.seconds


def test_a_pipelines_ideal_is_its_schedule_with_the_passes_of_the_step() -> None:
    events: list[Event] = []
    for rank, batch, start in ((0, 0, 0.0), (0, 1, 0.01), (1, 0, 0.02), (1, 1, 0.05)):
        events.append(replace(span(rank, "F", 1 + start, 1.01 + start), micro_batch=batch))
    for rank, batch, start in ((1, 0, 0.03), (1, 1, 0.06), (0, 0, 0.06), (0, 1, 0.09)):
        events.append(replace(span(rank, "B", 1 + start, 1.02 + start), micro_batch=batch))
    spec = spec_of({"pipeline": 2}, micro_batches=2)
    film = film_of(spec, watched(events))
    assert film is not None
    assert film.ideal_says == "Theory’s end, 90 ms"  # (2 + 2 − 1) × 30 ms
    assert "By theory 33.3 % of the passes' time is a bubble." in film.says
    assert [label[3] for label in film.lanes[0].labels] == ["0", "1", "0", "1"]
    first = film.reel.moments[0]
    assert (first.name, "keeps at most 2 micro-batches" in first.says) == ("Forward, micro-batch 0", True)


def test_only_the_last_watched_step_is_there() -> None:
    view = fold([span(0, "F", 0.0, 0.5, number=2), *TWO_RANKS], {})
    assert view.spans == tuple(TWO_RANKS)


def test_cutting_leaves_what_is_not_cut() -> None:
    assert without((0.0, 10.0), [(2.0, 3.0), (2.5, 4.0), (9.0, 12.0)]) == [(0.0, 2.0), (4.0, 9.0)]
    assert without((0.0, 1.0), [(0.0, 1.0)]) == []


def test_a_trace_has_a_process_for_every_rank_and_microseconds() -> None:
    first, *_, last = (event for event in chrome_trace(TWO_RANKS)["traceEvents"] if event["ph"] == "X")
    assert (first["name"], first["ph"], first["pid"], first["ts"]) == ("Forward 0", "X", 0, 1_000_000.0)
    assert round(first["dur"]) == 10_000
    assert (last["name"], last["pid"], last["args"]) == ("Optimizer", 1, {"step": 3})


def test_collectives_overlap_in_threads_of_their_own() -> None:
    reduce = span(0, "communication", 1.041, 1.05, operation="all_reduce", group="data", payload_bytes=4096)
    spans = [*TWO_RANKS, reduce, replace(reduce, start=1.045, end=1.055), replace(reduce, start=1.052, end=1.06)]
    events = chrome_trace(spans)["traceEvents"]
    moves = [event for event in events if event["ph"] == "X" and event["name"] == "all_reduce over data"]
    assert [event["tid"] for event in moves] == [1000, 1001, 1000]
    assert moves[0]["args"] == {"step": 3, "operation": "all_reduce", "group": "data", "payload_bytes": 4096}
    names = {event["tid"]: event["args"]["name"] for event in events if event["ph"] == "M" and event["pid"] == 0}
    assert names == {0: "stage 0", 1000: "communication", 1001: "communication"}


def test_a_message_is_drawn_solid_no_longer_than_the_fastest_of_its_size_and_the_bubble_is_named() -> None:
    """Rank 0 sends as much twice, at 1.00 and 1.02 s; of the first it is told after 2 ms, of the second when it next
    looked, 36 ms later."""
    sent = {"operation": "send", "phase": "forward", "group": "pipeline", "group_size": 2, "wire_bytes": 64}
    first = span(0, "communication", 1.01, 1.012, payload_bytes=64, **sent)
    second = span(0, "communication", 1.02, 1.056, payload_bytes=64, **sent)
    film = film_of(spec_of({"pipeline": 2}, micro_batches=2), watched([*TWO_RANKS, first, second]))
    assert film is not None
    (late,) = film.lanes[0].late
    assert [float(each) for each in late] == pytest.approx([100 * at / film.milliseconds for at in (22, 34)], abs=0.01)
    assert [row.took for row in film.reel.rows] == ["2", "≤ 36"]
    assert "when this rank looked next; the fastest of its size took 2 ms." in film.reel.moments[2].says
    # passes from 1.00 to 1.06 s on two ranks, 60 of 120 ms in one
    assert film.title == "Ranks wait in the bubble for 50 % of the passes' time"
