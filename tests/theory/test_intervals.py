"""Four of five intervals hold on publications that neither they nor the constants have seen."""

from __future__ import annotations

from math import exp, log
from statistics import median
from typing import Any

import pytest

from app.core.settings import ROOT
from app.reference.validation import report
from app.theory import estimate, parse_estimate_request
from app.theory.planner.evidence import evidence
from app.theory.planner.held_out import blind_coverage
from app.theory.planner.intervals import WIDENING, Evidence, Features, coverage, distance, spread, unseen_spread
from tests.support.write_evidence import found

PLAN: dict[str, Any] = {
    "model": "llama-3-8b",
    "parallel": {"data": 64, "zero": 3},
    "cluster": {"gpu": "h100-80gb"},
    "profile": "torchtitan",
}


def test_the_evidence_is_what_the_tables_and_the_constants_give() -> None:
    kept, now = evidence(), found()
    assert [(row.publication, row.table, row.is_time, row.features) for row in kept] == [
        (row.publication, row.table, row.is_time, row.features) for row in now
    ]
    assert [row.error for row in kept] == pytest.approx([row.error for row in now], abs=2e-4)


def test_four_of_five_hold_on_publications_left_out() -> None:
    speed, memory = coverage(evidence(), True), coverage(evidence(), False)
    assert (speed.rows, memory.rows) == (169, 18)
    assert 0.80 <= speed.of_rows <= 0.90
    assert 0.80 <= speed.of_publications <= 0.90
    assert memory.of_rows >= 0.80


def test_intervals_are_narrow_enough_to_be_of_use() -> None:
    widths = [unseen_spread(row, evidence()) for row in evidence() if row.is_time]
    assert median(each.width for each in widths if each) < 0.13, "one eighth either way"


def test_chosen_without_the_publication_intervals_still_hold_about_as_often() -> None:
    blind = blind_coverage(evidence())
    assert blind.rows == 169
    assert 0.80 <= blind.of_rows <= 0.90
    assert 0.80 <= blind.of_publications <= 0.90


def test_a_publication_has_no_say_in_the_setting_it_is_tried_with() -> None:
    rows = [row(name, error) for name in ("p", "q") for error in (0.1, 0.1, 0.1)]
    surprise = [row("r", 5.0)]
    assert blind_coverage([*rows, *surprise]).of_publications == pytest.approx(2 / 3)


def test_an_estimate_lies_inside_its_interval_and_far_plans_are_less_sure() -> None:
    near = estimate(parse_estimate_request(PLAN))
    low, high = near.interval.step_seconds or (0.0, 0.0)
    step = near.time.step_seconds or 0.0
    assert low < step < high
    assert low * high == pytest.approx(step**2), "as far either way, as a ratio"
    assert near.interval.rows > 0
    held = near.interval.memory_bytes or (0.0, 0.0)
    assert held[0] < near.memory.per_rank_bytes.total < held[1]
    odd = {**PLAN, "cluster": {"gpu": "mi300x-192gb"}, "training": {"sequence": 1_048_576, "recompute": "full"}}
    far = estimate(parse_estimate_request({**odd, "parallel": {"data": 8, "context": 64, "zero": 3}})).interval
    assert far.step_seconds is not None
    assert log(far.step_seconds[1] / far.step_seconds[0]) > log(high / low)


def test_without_a_gpu_there_is_no_interval() -> None:
    data = {name: value for name, value in PLAN.items() if name != "cluster"}
    interval = estimate(parse_estimate_request(data)).interval
    assert (interval.step_seconds, interval.memory_bytes, interval.rows) == (None, None, 0)


def row(publication: str, error: float, word: str = "a", size: float = 0.0, is_time: bool = True) -> Evidence:
    return Evidence(publication, publication, is_time, Features((word,), (size, 0.0, 0.0)), error)


def test_the_width_is_that_of_the_nearest_rows() -> None:
    here = Features(("a",), (0.0, 0.0, 0.0))
    assert distance(here, Features(("b",), (6.0, 0.0, 0.0))) == 2.0
    close = spread(here, [row("p", 0.1 * each) for each in range(1, 6)])
    assert close is not None
    assert (close.width, close.rows) == (pytest.approx(0.4), 5)
    assert close.around(2.0) == pytest.approx((2 * exp(-0.4), 2 * exp(0.4)))
    away = spread(here, [row("p", 0.1 * each, size=12.0) for each in range(1, 6)])
    assert away is not None
    assert away.width == pytest.approx(0.4 * (1 + 2 * WIDENING))
    crowd = spread(here, [*(row("p", 0.1) for _ in range(9)), row("q", 0.3)])
    assert crowd is not None
    assert crowd.width == pytest.approx(0.3), "nine rows of one publication weigh as much as one of another"
    assert spread(here, []) is None


def test_a_row_is_judged_without_its_own_publication() -> None:
    rows = [row("p", 0.5), row("q", 0.1), row("q", 0.9, is_time=False)]
    judged = unseen_spread(rows[0], rows)
    assert judged is not None
    assert judged.width == pytest.approx(0.1)
    assert unseen_spread(rows[2], rows) is None, "no other table of memory"


def test_the_page_says_of_every_row_where_it_should_lie() -> None:
    lines = [line for lane in report(ROOT / "cards").lanes for line in lane.lines]
    assert all(" to " in line.interval for line in lines)
    assert {line.holds for line in lines} == {True, False}
