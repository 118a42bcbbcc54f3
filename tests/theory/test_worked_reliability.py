"""Failures, checkpoints and goodput against examples worked out elsewhere, or by hand beside each line."""

from __future__ import annotations

import math
from typing import Any

import pytest

from app.theory import reliability
from app.theory.reliability import FAILURE_RATES
from labs.spec import SpecError
from tests.theory.worked import GB, OPENING, PERCENT, Example, worked

HOUR, MINUTE, TB = 3600.0, 60.0, 1e12
LLAMA_3 = FAILURE_RATES["llama-3"].gpu_seconds_per_failure
JOBS_OF_1024 = FAILURE_RATES["rsc-1024"].gpu_seconds_per_failure
RSC_1 = FAILURE_RATES["rsc-1"].gpu_seconds_per_failure

# Hours between failures; minutes between checkpoints of 10, 60 and 300 s by Young; loss in %.
YOUNG = [
    (99.0, ("44.5", "109", "244"), ("0.75", "1.83", "4.1")),
    (15.8, ("17.8", "43.5", "97.4"), ("1.9", "4.6", "10.3")),
    (3.1, ("7.9", "19.3", "43.1"), ("4.2", "10.4", "23.2")),
]
WRITES = (10, 60, 300)

EXAMPLES: list[Example] = [
    # 1 of the 2,047 others; half an hour in ten, for a tenth of the job
    ("pair_lost", {"nodes": 2048}, PERCENT, "0.0489"),
    ("replica_downtime", {"mtbf_seconds": 36000, "repair_seconds": 1800, "replicas": 10}, PERCENT, "0.50"),
    ("replica_downtime", {"mtbf_seconds": 36000, "repair_seconds": 1800, "replicas": 1}, PERCENT, "5.00"),
    *(
        ("mtbf", {"gpus": gpus, "gpu_seconds_per_failure": LLAMA_3}, HOUR, shown)
        for gpus, shown in ((16384, "3.09"), (4096, "12.4"), (1024, "49.5"), (512, "99.0"))
    ),
    # 7.9 hours at 1,024 (Kokolis et al. 2024), and that cluster's own projection for 16,384, 1.8 hours
    *(
        ("mtbf", {"gpus": gpus, "gpu_seconds_per_failure": JOBS_OF_1024}, HOUR, shown)
        for gpus, shown in ((1024, "7.9"), (512, "15.8"), (16384, "0.49"))
    ),
    ("mtbf", {"gpus": 16384, "gpu_seconds_per_failure": RSC_1}, HOUR, "1.8"),
    # 54 days at 3.093 hours
    ("failure_count", OPENING, 1, "419"),
    # e^-1, and e^(-24/99)
    ("survival", OPENING, PERCENT, "36.8"),
    ("survival", {"seconds": 24 * HOUR, "mtbf_seconds": 99 * HOUR}, PERCENT, "78.5"),
    *(
        ("checkpoint_interval", {"checkpoint_seconds": write, "mtbf_seconds": hours * HOUR}, MINUTE, shown)
        for hours, intervals, _ in YOUNG
        for write, shown in zip(WRITES, intervals, strict=True)
    ),
    # 77.1 and one minute less; and 19.3 × (1 + 0.0518/3 + 0.0027/9) − 1
    ("checkpoint_interval", {"checkpoint_seconds": 60, "mtbf_seconds": 49.5 * HOUR}, MINUTE, "77.1"),
    ("checkpoint_interval", {"checkpoint_seconds": 60, "mtbf_seconds": 49.5 * HOUR, "rule": "daly"}, MINUTE, "76.1"),
    (
        "checkpoint_interval",
        {"checkpoint_seconds": 60, "mtbf_seconds": 3.093 * HOUR, "rule": "daly-higher-order"},
        MINUTE,
        "18.6",
    ),
    *(
        ("checkpoint_overhead", {"checkpoint_seconds": write, "mtbf_seconds": hours * HOUR}, PERCENT, shown)
        for hours, _, losses in YOUNG
        for write, shown in zip(WRITES, losses, strict=True)
    ),
    # √(120/M) + 600/M
    *(
        (
            "lost_time_at_best",
            {"checkpoint_seconds": 60, "mtbf_seconds": hours * HOUR, "restart_seconds": 600},
            PERCENT,
            shown,
        )
        for hours, shown in ((99, "2.0"), (3.1, "15.7"), (49.5, "2.93"))
    ),
    # 60/4,626 + (2,313 + 600)/178,200
    (
        "lost_time",
        OPENING,
        PERCENT,
        "2.93",
    ),
    # by hand: 600/(1000 e^0.1 (e^0.7 − 1)) = 0.6/(1.10517 × 1.01375)
    (
        "goodput",
        OPENING,
        PERCENT,
        "53.55",
    ),
    *(
        ("checkpoint_size", {"parameters": billions * 1e9}, GB, shown)
        for billions, shown in ((30, "420"), (70, "980"), (405, "5670"))
    ),
    ("checkpoint_size", {"parameters": 70e9, "content": "optimizer"}, GB, "840"),
    ("checkpoint_size", {"parameters": 70e9, "content": "weights"}, GB, "140"),
    *(
        ("checkpoint_time", {"parameters": billions * 1e9, "bytes_per_second": rate}, 1, shown)
        for billions, rate, shown in ((70, 10e9, "98"), (70, 128e9, "7.7"), (405, 2 * TB, "2.8"))
    ),
]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: f"{example[0]}-{example[3]}")
def test_a_formula_of_reliability_gives_its_worked_example(example: Example) -> None:
    found, shown = worked(example)
    assert found == shown


def test_published_rates_in_gpu_hours() -> None:
    """16,384 × 1,296/419; 1,024 × 7.9; 192,000/6.5."""
    hours = {name: round(rate.gpu_seconds_per_failure / HOUR) for name, rate in FAILURE_RATES.items()}
    assert hours == {"llama-3": 50677, "rsc-1": 29538, "rsc-1024": 8090}
    assert all(rate.source for rate in FAILURE_RATES.values())


def best_by_search(write: float, between: float) -> float:
    """The interval of the most goodput, by trying a fine grid."""
    grid = [math.exp(math.log(write / 10) + step * 0.001) for step in range(12000)]
    return max(grid, key=lambda interval: reliability.goodput(interval, write, between, 0.0))


@pytest.mark.parametrize("write", [10.0, 300.0, 3000.0])
def test_dalys_higher_order_interval_is_the_best_one(write: float) -> None:
    between = 3.0 * HOUR
    found = reliability.checkpoint_interval_seconds(write, between, "daly-higher-order")
    assert found == pytest.approx(best_by_search(write, between), rel=0.005)


def test_the_first_orders_are_near_the_best_where_failures_are_rare() -> None:
    best = best_by_search(10.0, 99 * HOUR)
    for rule, within in (("young", 0.005), ("daly", 0.005)):
        assert reliability.checkpoint_interval_seconds(10.0, 99 * HOUR, rule) == pytest.approx(best, rel=within)


def test_goodput_agrees_with_the_first_order_where_failures_are_rare() -> None:
    lost = reliability.lost_fraction(2670.0, 10.0, 99 * HOUR, 600.0)
    assert reliability.goodput(2670.0, 10.0, 99 * HOUR, 600.0) == pytest.approx(1 - lost, abs=1e-4)


def test_goodput_of_a_job_that_always_fails_is_nothing() -> None:
    assert reliability.goodput(1e6, 60.0, 1.0, 60.0) == 0


def refused(function: Any, *given: Any) -> set[str]:
    with pytest.raises(SpecError) as raised:
        function(*given)
    return {violation.field for violation in raised.value.violations}


def test_a_job_that_makes_no_progress_is_refused_by_name() -> None:
    assert refused(reliability.checkpoint_interval_seconds, 100.0, 50.0, "daly") == {"checkpoint_seconds"}
    assert reliability.checkpoint_interval_seconds(100.0, 50.0, "daly-higher-order") == 50
    assert refused(reliability.checkpoint_overhead, 100.0, 200.0) == {"checkpoint_seconds"}
    assert refused(reliability.lost_fraction, 60.0, 60.0, 1e6, 0.0) == {"interval_seconds"}
    assert refused(reliability.lost_fraction, 1000.0, 10.0, 500.0, 0.0) == {"mtbf_seconds"}
    assert refused(reliability.lost_fraction_at_best, 10.0, 500.0, 600.0) == {"mtbf_seconds"}
