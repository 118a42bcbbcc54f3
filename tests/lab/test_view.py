"""From events to what a page shows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.lab.comparison import compare
from app.lab.folding import RunFold, fold
from app.lab.naming import describe, title
from app.lab.quantities import quantities_of
from app.reveal.comparison import Comparison
from app.units import value_text
from labs.spec import parse_run_spec
from labs.spec.events import HostEvent
from tests.support.events import communication, log, measurement, memory, one_of_each

THEORY = {
    "transfers": [
        {"operation": "all_gather", "phase": "forward", "payload_bytes": 120.0, "title": "All-gather, forward"}
    ],
    "model_state_bytes": 100.0,
    "payload_bytes_per_step": 300.0,
}


def test_each_rank_says_where_it_sits() -> None:
    view = fold([HostEvent(0.2, 3, "n2"), HostEvent(0.1, 0, "n1"), HostEvent(0.1, 1, "n1")], THEORY)
    assert view.hosts == {0: "n1", 1: "n1", 3: "n2"}
    assert view.seats == {"n1": [0, 1], "n2": [3]}


def test_the_newest_probed_step_counts_and_the_worst_rank_is_named() -> None:
    view = fold(
        [
            memory(0, 2, "peak", parameters=1, activations=1),
            memory(1, 2, "peak", parameters=1),
            memory(0, 12, "peak", parameters=5, activations=1),
            memory(1, 12, "peak", parameters=5, activations=4),
            memory(1, 12, "step_end", parameters=5, gradients=5, optimizer=10, temporary=3),
        ],
        THEORY,
    )
    assert view.memory_step == 12
    assert view.worst is not None
    assert (view.worst.rank, view.worst.total) == (1, 9.0)
    assert view.state[0].total == 20.0, "model state is what persists; temporary bytes are not part of it"


def test_collectives_are_added_up_beside_theory() -> None:
    event = communication("all_gather", payload_bytes=60, wire_bytes=30, seconds=0.5)
    view = fold([event, event, replace(event, rank=1)], THEORY)
    (row,) = view.transfers
    assert (row.title, row.count, row.payload_bytes, row.wire_bytes, row.seconds) == (
        "All-gather, forward",
        2,
        120,
        60,
        1.0,
    )
    assert row.expected_payload_bytes == 120.0


def test_theory_is_added_up_where_a_ledger_cannot_tell_apart() -> None:
    """Tensor parallelism all-reduces results and, of one number a token, the cross entropy."""
    kind = {"operation": "all_reduce", "phase": "forward", "group": "tensor"}
    theory = {
        "transfers": [
            kind | {"title": "All-reduce, results", "payload_bytes": 100.0},
            kind | {"title": "All-reduce, cross entropy", "payload_bytes": 3.0},
            kind | {"group": "data", "title": "All-reduce, gradients", "payload_bytes": 7.0},
        ]
    }
    event = communication("all_reduce", group="tensor", count=8, payload_bytes=103)
    (row,) = fold([event], theory).transfers
    assert row.title == "All-reduce, results; All-reduce, cross entropy"
    assert row.expected_payload_bytes == 103.0


def test_long_logs_keep_their_end_and_say_how_much_is_missing() -> None:
    view = fold([log(str(i), t=i) for i in range(250)], THEORY)
    assert (len(view.log), view.log_dropped, view.log[-1].line) == (200, 50, "249")


@pytest.mark.parametrize(
    ("predicted", "measured", "off", "verdict"),
    [
        (100.0, 100.0, 1.0, "exact"),
        (50.0, 100.0, 2.0, "2.00 ×"),
        (200.0, 100.0, 2.0, "2.00 ×"),
        (None, 100.0, None, "not predicted"),
    ],
)
def test_a_prediction_is_off_by_a_ratio_in_either_direction(
    predicted: float | None, measured: float, off: float | None, verdict: str
) -> None:
    row = Comparison("State", "bytes", "x", predicted, 100.0, measured, 1.5)
    assert row.off_by == off
    assert row.verdict == verdict


def test_confidence_is_kept_or_not() -> None:
    assert Comparison("State", "bytes", "x", 80.0, 100.0, 100.0, 1.5).kept_confidence is True
    assert Comparison("State", "bytes", "x", 80.0, 100.0, 100.0, 1.1).kept_confidence is False
    assert Comparison("State", "bytes", "x", 80.0, 100.0, 100.0, None).kept_confidence is None


def test_quantities_without_a_result_still_show_theory() -> None:
    state, *_ = compare(quantities_of(parse_run_spec({"model": "gpt-mini"})), None, THEORY, None)
    assert (state.theory, state.measured, state.predicted) == (100.0, None, None)


def test_what_a_strategy_reports_of_itself_is_rank_0s_latest() -> None:
    event, scale = measurement("read from file", 1, 4000.0, "B"), measurement("loss scale", 1, 65536.0)
    view = fold([event, scale, replace(event, x=2, y=12000.0), replace(event, rank=1, x=3)], THEORY)
    assert [(each.name, each.step, each.value, each.unit) for each in view.readings] == [
        ("read from file", 2, 12000.0, "B"),
        ("loss scale", 1, 65536.0, ""),
    ]


def test_a_reading_that_is_no_number_is_left_out() -> None:
    """JSON has no NaN: a rank sends null."""
    assert fold([measurement("loss scale", 1, None)], THEORY).readings == ()


@pytest.mark.parametrize(
    ("parallel", "said"),
    [
        ({}, "DDP on 2 ranks"),
        ({"zero": 1}, "ZeRO-1 on 2 ranks"),
        ({"zero": 3, "shard": 2}, "FSDP on 2 ranks"),
        ({"data": 4, "zero": 3, "shard": 2}, "HSDP on 4 ranks"),
    ],
    ids=str,
)
def test_a_run_is_named_after_its_strategy(parallel: dict[str, int], said: str) -> None:
    spec = parse_run_spec({"model": "gpt-mini", "parallel": {"data": 2, **parallel}})
    assert title(spec) == said


def test_a_run_says_in_which_precision_it_computes() -> None:
    training = {"precision": "bf16-mixed", "state_layout": "zero-16"}
    assert describe(parse_run_spec({"model": "gpt-mini", "training": training})).endswith("40 steps, bf16-mixed.")


def test_points_of_a_programs_figure_come_from_every_rank() -> None:
    event = measurement("fp32", 32, 2e9, rank=1, figure="rate")
    view = fold([event, replace(event, rank=0, x=64), replace(event, y=None)], {})
    assert [(point.figure, point.name, point.x, point.y) for point in view.points] == [
        ("rate", "fp32", 32.0, 2e9),
        ("rate", "fp32", 64.0, 2e9),
    ]
    assert not view.readings


def test_folding_bit_by_bit_comes_to_the_same_and_leaves_earlier_views_alone() -> None:
    events = [*one_of_each(), *(log(str(i)) for i in range(300)), memory(1, 2, "peak", parameters=3)]
    folded, views = RunFold(THEORY), []
    for event in events:
        folded.take([event])
        views.append(folded.view())
    assert views == [fold(events[: i + 1], THEORY) for i in range(len(events))]


@pytest.mark.parametrize(
    ("value", "dimension", "text"),
    [
        (29.7e6, "bytes", "29.7 MB"),
        (0.272727, "fraction", "27.27 %"),
        (0.0032, "seconds", "3.2 ms"),
        (7200.0, "seconds", "2 h"),
        (65504.0, "count", "65,504"),
        (2.5786e9, "bytes_per_second", "2.579 GB/s"),
    ],
)
def test_a_value_is_written_in_the_unit_that_suits_it(value: float, dimension: str, text: str) -> None:
    assert value_text(value, dimension) == text
