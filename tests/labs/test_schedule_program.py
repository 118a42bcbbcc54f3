"""The program that measures pipeline schedules: what it is told to refuse, what theory expects, what ranks do."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from app.theory.lab_runs import Point, expected_of_program
from app.theory.lab_runs.programs.schedule import played
from app.theory.pipeline import (
    Order,
    bubble,
    in_flight_micro_batches,
    interleaved_bubble,
    order,
    split_backwards,
    zero_bubble,
)
from labs.probes.timeline import Span
from labs.programs.schedule.step import Step, whole_backwards
from labs.spec import ScheduleOptions, SpecError, parse_run_spec
from tests.labs.ranks import run_now


def asked(ranks: int, **options: Any) -> dict[str, Any]:
    return {"program": "schedule", "parallel": {"pipeline": ranks}, "options": options, "device": "cpu"}


@pytest.mark.parametrize(
    ("ranks", "options", "fields"),
    [
        (1, {}, {"parallel.pipeline"}),
        (
            3,
            {"compared_with": ["interleaved"]},
            {"options.micro_batches.0", "options.micro_batches.1", "options.micro_batches.2"},
        ),
        (4, {"schedule": "dualpipev", "compared_with": [], "micro_batches": [7]}, {"options.micro_batches.0"}),
        (4, {"slow_down": [1, 2]}, {"options.slow_down"}),
        (4, {"forward_seconds": 0}, {"options.forward_seconds"}),
        (4, {"slow_down": [1, 1, 1, 9]}, {"options.slow_down.3"}),
        (4, {"micro_batches": [64, 64, 64], "repeats": 5}, {"options.micro_batches"}),
        (4, {"schedule": "pipedream"}, {"options.schedule"}),
    ],
)
def test_what_cannot_be_scheduled_is_refused_by_field(ranks: int, options: dict[str, Any], fields: set[str]) -> None:
    with pytest.raises(SpecError) as refused:
        parse_run_spec(asked(ranks, **options))
    assert {violation.field for violation in refused.value.violations} == fields


def expected(ranks: int, **options: Any) -> dict[tuple[str, str, float], float]:
    points = expected_of_program(ScheduleOptions.model_validate(options), ranks).points
    return {(point.figure, point.name, point.x): point.y for point in points}


@pytest.mark.parametrize("ranks", [2, 3, 4, 8])
def test_with_equal_ranks_and_free_messages_theory_is_what_the_closed_forms_say(ranks: int) -> None:
    counts = (2 * ranks, 4 * ranks)
    points = expected(ranks, micro_batches=counts, virtual_stages=4)
    for m in counts:
        assert points["bubble", "gpipe", m] == pytest.approx(bubble(ranks, m))
        assert points["bubble", "1f1b", m] == pytest.approx(bubble(ranks, m))
        assert points["bubble", "interleaved", m] == pytest.approx(interleaved_bubble(ranks, m, 4))
        assert points["bubble", "zero-bubble", m] == pytest.approx(zero_bubble(ranks, m))
        assert points["step", "1f1b", m] == pytest.approx((m + ranks - 1) * 0.09)
    for rank in range(ranks):
        assert points["in_flight", "gpipe", rank] == 4 * ranks
        assert points["in_flight", "1f1b", rank] == in_flight_micro_batches("1f1b", ranks, 4 * ranks, rank)
        assert points["in_flight", "interleaved", rank] == in_flight_micro_batches(
            "interleaved", ranks, 4 * ranks, rank, 4
        )


def test_a_slow_rank_and_slow_messages_cost_time() -> None:
    even = ScheduleOptions(micro_batches=(8,))
    uneven = even.model_copy(update={"slow_down": (1.0, 2.0, 1.0, 1.0)})
    far = even.model_copy(update={"message_seconds": 0.01})
    seconds = [played(each, 4, "1f1b", 8).step_seconds for each in (even, uneven, far)]
    assert seconds[0] == pytest.approx(11 * 0.09)
    assert seconds[1] > 0.03 + 8 * 0.18 + 0.06  # the slow rank's passes, one forward before and one backward after
    assert seconds[2] > seconds[0] + 2 * 3 * 0.01


def test_quantities_are_of_the_drawn_step() -> None:
    found = expected_of_program(ScheduleOptions(schedule="gpipe", compared_with=(), micro_batches=(2, 6)), 4)
    assert found.quantities == pytest.approx({"bubble_fraction": 3 / 9, "step_seconds": 9 * 0.09, "in_flight": 6})
    assert Point("in_flight", "gpipe", 3, 6.0) in found.points


def span(what: Any, stage: int, micro_batch: int, start: float, end: float) -> Span:
    return Span(what, stage, micro_batch, start, end)


def test_both_gradients_in_one_go_are_one_backward() -> None:
    done = [span("F", 1, 0, 0, 1), span("W", 1, 0, 1, 2), span("B", 1, 0, 2, 3), span("B", 1, 1, 3, 4)]
    done += [span("W", 1, 1, 4, 5)]
    assert whole_backwards(done) == (
        span("F", 1, 0, 0, 1),
        span("B", 1, 0, 1, 3),
        span("B", 1, 1, 3, 4),
        span("W", 1, 1, 4, 5),
    )


def test_a_step_knows_what_idled_and_what_was_held() -> None:
    first = (span("F", 0, 0, 0, 1), span("F", 0, 1, 1, 2), span("B", 0, 0, 4, 5), span("B", 0, 1, 6, 8))
    last = (span("F", 1, 0, 1, 2), span("B", 1, 0, 2, 4), span("F", 1, 1, 4, 5), span("B", 1, 1, 5, 6))
    step = Step((first, last), 1)
    assert step.seconds == 8
    assert step.idle_share == 1 - 10 / 16
    assert (step.in_flight(0), step.in_flight(1)) == (2, 1)
    assert Step((first, last), 2).in_flight(0) == 1
    waits = [(each.start, each.end) for each in step.with_waits(1) if each.what == "idle" and each.seconds]
    assert waits == [(0, 1), (6, 8)]


def test_a_split_backward_holds_until_the_weight_has_its_gradient() -> None:
    passes = (span("F", 1, 0, 0, 1), span("B", 1, 0, 1, 2), span("F", 1, 1, 2, 3), span("W", 1, 0, 3, 4))
    assert Step((passes,), 1).in_flight(0) == 2


def whole_where_first(passes: Order) -> list[list[tuple[str, int, int]]]:
    """As ranks run them: the first stage computes both gradients in W, which is a whole backward."""
    split = split_backwards([each for rank in passes for each in rank])
    return [
        [
            ("B" if each.chunk == 0 and each.kind == "W" else each.kind, each.chunk, each.micro_batch)
            for each in rank
            if not (each.chunk == 0 and each.kind == "B" and (0, each.micro_batch) in split)
        ]
        for rank in passes
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("schedule", "other"),
    [("1f1b", "gpipe"), ("interleaved", "looped-bfs"), ("zero-bubble", "zbv"), ("dualpipev", "gpipe")],
)
def test_ranks_run_the_order_theory_has_and_are_never_faster(schedule: str, other: str) -> None:
    options = {"schedule": schedule, "compared_with": [other], "micro_batches": [4]}
    run = run_now(asked(2, **options))
    assert run.returncode == 0, run.stderr
    assert isinstance(run.spec.options, ScheduleOptions)
    drawn = order(schedule, 2, 4, run.spec.options.stages_a_rank(run.spec.options.schedule))
    for rank, passes in enumerate(whole_where_first(drawn)):
        spans = sorted(run.of_kind("span", rank), key=lambda each: each["start"])
        ran = [(each["what"], each["stage"], each["micro_batch"]) for each in spans if each["what"] != "idle"]
        assert ran == passes
        assert all(early["end"] <= late["start"] + 2e-6 for early, late in pairwise(spans))
    found = expected_of_program(run.spec.options, 2)
    measured = {(e["figure"], e["name"], e["x"]): e["y"] for e in run.of_kind("measurement")}
    assert set(measured) == {(point.figure, point.name, point.x) for point in found.points}
    for point in found.points:
        value = measured[point.figure, point.name, point.x]
        if point.figure == "in_flight":
            assert value == point.y
        elif point.figure == "step":  # no pass takes less than it should; how much later it is run is up to the machine
            assert 0.999 < value / point.y < 2
    assert run.summary()["in_flight"] == found.quantities["in_flight"]
    assert run.summary()["step_seconds"] == measured["step", schedule, 4]


@pytest.mark.slow
def test_a_slow_rank_and_slow_messages_are_measured_as_expected() -> None:
    options = {"compared_with": [], "micro_batches": [4], "slow_down": [1, 2, 1], "message_seconds": 0.03, "repeats": 3}
    run = run_now(asked(3, **options))
    assert run.returncode == 0, run.stderr
    assert run.spec.options is not None
    expected_seconds = expected_of_program(run.spec.options, 3).quantities["step_seconds"]
    assert 0.999 < run.summary()["step_seconds"] / expected_seconds < 2
