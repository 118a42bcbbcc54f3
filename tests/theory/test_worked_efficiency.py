"""Formulas of compute and efficiency against examples worked out elsewhere, or by hand beside each line."""

from __future__ import annotations

from typing import Any

import pytest

from app.theory import compute
from labs.spec import SpecError
from tests.theory.worked import A100, DAYS, H100, OPENING, PERCENT, Example, Inputs, worked

LLAMA_3: Inputs = {"parameters": 405e9, "tokens": 15.6e12}
SHAPE_7B: Inputs = {"layers": 32, "hidden": 4096}

# Serial share in %, ranks, speed-up (Amdahl 1967)
AMDAHL = [
    (2, 8, "7.02"),
    (2, 64, "28.32"),
    (2, 256, "41.97"),
    (2, 1024, "47.72"),
    (5, 8, "5.93"),
    (5, 64, "15.42"),
    (5, 256, "18.62"),
    (5, 1024, "19.64"),
    (10, 8, "4.71"),
    (10, 64, "8.77"),
    (10, 256, "9.66"),
    (10, 1024, "9.91"),
]

# Parameters in billions, GPUs, tokens per second of all, peak, MFU in %
UTILISED = [
    (7, 1, 3500, A100, "47.1"),
    (7, 8, 28000, A100, "47.1"),
    (7, 1, 9000, H100, "38.2"),
    (70, 1024, 8e5, H100, "33.2"),
]

EXAMPLES: list[Example] = [
    *(("amdahl_speedup", {"serial": serial / 100, "ranks": ranks}, 1, shown) for serial, ranks, shown in AMDAHL),
    *(
        ("amdahl_efficiency", {"serial": 0.02, "ranks": ranks}, PERCENT, shown)
        for ranks, shown in ((8, "87.7"), (64, "44.2"), (256, "16.4"), (1024, "4.7"))
    ),
    # 199.7 of 256 need a serial share of about a thousandth
    ("amdahl_serial_share", OPENING, PERCENT, "0.111"),
    ("gustafson_speedup", OPENING, 1, "250.9"),
    ("gustafson_speedup", {"serial": 0.05, "ranks": 64}, 1, "60.85"),
    ("gustafson_serial_share", OPENING, PERCENT, "5.00"),
    # 6ND: GPT-3 is quoted at 3.14e23 (Brown et al. 2020, table D.1), Llama 3.1 405B at 3.8e25 (Llama team 2024)
    ("training_flops", OPENING, 1e23, "8.4"),
    ("training_flops", {"parameters": 70e9, "tokens": 15e12}, 1e24, "6.3"),
    ("training_flops", LLAMA_3, 1e25, "3.79"),
    ("training_flops", {"parameters": 175e9, "tokens": 300e9}, 1e23, "3.15"),
    ("training_flops", {"parameters": 7e9, "tokens": 16384}, 1e14, "6.88"),
    # 12 × 32 × 4096 × 2048
    ("attention_flops", OPENING, 1e9, "3.22"),
    *(
        ("attention_factor", {"parameters": 7e9, "sequence": s, "mask": mask, **SHAPE_7B}, 1, shown)
        for s, mask, shown in (
            (2048, "full", "1.077"),
            (8192, "full", "1.307"),
            (8192, "causal", "1.153"),
            (32768, "full", "2.227"),
        )
    ),
    ("training_time", OPENING, DAYS, "76.1"),
    ("training_time", {**LLAMA_3, "gpus": 16384, "peak_flops_per_second": H100, "mfu": 0.41}, DAYS, "66.0"),
    ("affordable_flops", OPENING, 1e24, "1.575"),
    # 1,024 GPUs for 76.1 days
    ("gpu_time", OPENING, 3.6e9, "1.870"),
    # 1,024 × 24 × 10 hours at 2 a piece
    ("training_cost", OPENING, 1e3, "491.52"),
    *(
        (
            "mfu",
            {"tokens_per_second": rate, "parameters": billions * 1e9, "gpus": gpus, "peak_flops_per_second": peak},
            PERCENT,
            shown,
        )
        for billions, gpus, rate, peak, shown in UTILISED
    ),
    *(
        ("throughput", {"parameters": billions * 1e9, "gpus": 1, "peak_flops_per_second": peak, "mfu": 0.4}, 1, shown)
        for billions, peak, shown in ((70, H100, "942"), (70, A100, "297"), (7, H100, "9419"))
    ),
    ("hfu", OPENING, PERCENT, "60.0"),
    ("hfu", {"mfu": 0.45, "recompute": "none"}, PERCENT, "45.0"),
    # 4 × 32 × 4096 × 2048 and, with the forward of 7B, 1.4e10 more
    (
        "recompute_flops",
        {"parameters": 7e9, "tokens": 1, "sequence": 2048, "recompute": "selective", **SHAPE_7B},
        1e9,
        "1.07",
    ),
    ("recompute_flops", OPENING, 1e10, "1.51"),
    *(
        ("pass_flops", {"parameters": 7e9, "tokens": 16384, "part": part}, 1e14, shown)
        for part, shown in (
            ("forward", "2.29"),
            ("input-gradients", "2.29"),
            ("weight-gradients", "2.29"),
            ("backward", "4.59"),
            ("all", "6.88"),
            ("frozen-weights", "4.59"),
        )
    ),
]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: f"{example[0]}-{example[3]}")
def test_a_formula_of_efficiency_gives_its_worked_example(example: Example) -> None:
    found, shown = worked(example)
    assert found == shown


def refused(function: Any, *given: Any) -> set[str]:
    with pytest.raises(SpecError) as raised:
        function(*given)
    return {violation.field for violation in raised.value.violations}


def test_the_serial_share_is_found_again_from_its_speed_up() -> None:
    for serial in (0.0, 0.02, 0.5, 1.0):
        assert compute.amdahl_serial_share(compute.amdahl_speedup(serial, 64), 64) == pytest.approx(serial)
        assert compute.gustafson_serial_share(compute.gustafson_speedup(serial, 64), 64) == pytest.approx(serial)


def test_efficiency_is_speed_up_per_rank() -> None:
    for ranks in (1, 7, 256):
        assert compute.amdahl_efficiency(0.03, ranks) == pytest.approx(compute.amdahl_speedup(0.03, ranks) / ranks)


def test_speed_ups_nothing_explains_are_refused() -> None:
    for inverse in (compute.amdahl_serial_share, compute.gustafson_serial_share):
        assert refused(inverse, 1.0, 1) == {"ranks"}
        assert refused(inverse, 9.0, 8) == {"speedup"}
        assert refused(inverse, 0.5, 8) == {"speedup"}


def test_hfu_beyond_the_peak_is_refused() -> None:
    assert refused(compute.hardware_flops_utilisation, 0.8) == {"mfu"}
    with pytest.raises(SpecError, match=r"at most 0\.75"):  # 8N computed for 6N counted: 6/8
        compute.hardware_flops_utilisation(0.76)
    assert compute.hardware_flops_utilisation(0.75) == pytest.approx(1)


def test_throughput_is_the_inverse_of_mfu() -> None:
    rate = compute.throughput(13e9, 64, A100, 0.43)
    assert compute.model_flops_utilisation(rate, 13e9, 64, A100) == pytest.approx(0.43)


def test_full_recomputation_of_short_sequences_adds_a_third() -> None:
    """2N of 6N: with one key per query attention's own products are 4 × 24 × 2048 of 2 × 10⁹ FLOPs."""
    added = compute.recompute_flops(1e9, 100, 24, 2048, 1, "full")
    assert added / compute.training_flops(1e9, 100) == pytest.approx(1 / 3, rel=1e-4)
    assert compute.recompute_flops(1e9, 100, 24, 2048, 1, "none") == 0
