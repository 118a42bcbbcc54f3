"""Attention kernels by generation against the rates their papers print."""

from __future__ import annotations

from typing import Any

import pytest

from app.theory.hardware import GPUS
from app.theory.planner import estimate, parse_estimate_request
from app.theory.planner.attention_kernels import KERNELS, Kernel, attention_seconds, kernel_of, kernels_on
from app.theory.planner.engine.constants import FITTED
from app.theory.planner.engine.roofline import device_of
from labs.spec import SpecError


def causal_tflops(gpu: str, kernel: Kernel, sequence: int, width: int) -> tuple[float, float]:
    """(forward, backward) as papers count: half of 4·s²·d a head forward, 2.5 times that backward."""
    scores = sequence**2 / 2
    rates = device_of(GPUS[gpu], "bf16-mixed", kernel=kernel).attention
    forward, backward = attention_seconds(rates, scores, sequence, width, width)
    return 4 * scores * width / forward / 1e12, 10 * scores * width / backward / 1e12


@pytest.mark.parametrize(
    ("kernel", "printed"),
    [
        ("flash-2", {512: 191, 1024: 260, 2048: 298, 4096: 319, 8192: 333, 16384: 335}),
        ("flash-3", {512: 292, 1024: 423, 2048: 521, 4096: 579, 8192: 602, 16384: 616}),
        ("cudnn", {512: 315, 1024: 410, 2048: 484, 4096: 518, 8192: 529, 16384: 539}),
    ],
)
def test_causal_rates_are_those_printed_at_every_length(kernel: Kernel, printed: dict[int, float]) -> None:
    """Shah et al. 2024, figure 5: H100, heads of 128, causal, forward. The shares come from its rows without a mask."""
    for sequence, rate in printed.items():
        found, _ = causal_tflops("h100-80gb", kernel, sequence, 128)
        assert found == pytest.approx(rate, rel=0.25 if sequence < 1024 else 0.13)


def test_backward_is_slower_than_forward_and_kernels_get_faster() -> None:
    kernels: tuple[Kernel, ...] = ("flash-1", "flash-2", "cudnn", "flash-3")
    rates = [causal_tflops("h100-80gb", kernel, 8192, 128) for kernel in kernels]
    assert rates == sorted(rates)
    assert all(backward < forward for forward, backward in rates)


def test_a_part_held_to_less_power_follows_its_clock_only_where_the_kernel_would_draw_more() -> None:
    """FlashAttention-2 stays below 500 W on an H100; FlashAttention-3 does not."""
    assert 322e12 * FITTED.joules_per_flop < 500 < 648e12 * FITTED.joules_per_flop
    for kernel, slower in (("flash-2", False), ("flash-3", True)):
        full, held = (causal_tflops(gpu, kernel, 8192, 128)[1] for gpu in ("h100-80gb", "h100-96gb"))
        assert (held < 0.95 * full) == slower


def test_every_generation_has_a_kernel_and_every_rate_a_source() -> None:
    for gpu in GPUS.values():
        assert kernels_on(gpu.generation)
    for shares in KERNELS.values():
        assert 0 < shares.backward <= shares.forward < 1
        assert shares.source
    assert kernel_of("auto", ("cudnn", "flash-2"), "ampere") == "flash-2"
    assert kernel_of("auto", ("cudnn", "flash-2"), "hopper") == "cudnn"


PLAN: dict[str, Any] = {
    "model": "llama-3-8b",
    "training": {"sequence": 65536},
    "parallel": {"data": 8, "zero": 3},
    "cluster": {"gpu": "h100-80gb"},
}


def test_the_kernel_of_a_plan_changes_its_time() -> None:
    steps = [
        estimate(
            parse_estimate_request({**PLAN, "training": {"sequence": 65536, "attention_kernel": kernel}})
        ).time.step_seconds
        for kernel in ("flash-1", "flash-2", "flash-3")
    ]
    first, second, third = (step or 0.0 for step in steps)
    assert first > second > third > first / 3
    assert first > 1.5 * third


def test_a_kernel_that_does_not_run_there_is_refused_with_those_that_do() -> None:
    plan = {**PLAN, "training": {"attention_kernel": "flash-3"}, "cluster": {"gpu": "a100-80gb"}}
    with pytest.raises(SpecError) as raised:
        parse_estimate_request(plan)
    (violation,) = raised.value.violations
    assert violation.field == "training.attention_kernel"
    assert violation.accepted == "auto, flash-1, flash-2"
