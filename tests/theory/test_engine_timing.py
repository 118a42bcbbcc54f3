"""Step times: parts that sum, limits of the roofline, pipelines against the event simulation."""

from __future__ import annotations

import random
from typing import Any

import pytest

from app.theory.hardware import GPUS
from app.theory.pipeline import ChunkSeconds, order, simulate_pipeline
from app.theory.planner import estimate, parse_estimate_request
from app.theory.planner.attention_kernels import attention_seconds
from app.theory.planner.engine.constants import FITTED
from app.theory.planner.engine.exposure import StageSeconds
from app.theory.planner.engine.layer import layer_seconds
from app.theory.planner.engine.resolve import plan_of
from app.theory.planner.engine.roofline import device_of, matmul_seconds, sustained_share
from app.theory.planner.engine.timing import fill_seconds, idle_seconds
from labs.spec import SpecError

A100 = device_of(GPUS["a100-80gb"], "bf16-mixed")
H100 = device_of(GPUS["h100-80gb"], "bf16-mixed")
GPT3: dict[str, Any] = {"layers": 96, "hidden": 12288, "heads": 96, "vocab": 51200, "biases": True}
PLAN: dict[str, Any] = {
    "model": GPT3,
    "training": {"sequence": 2048, "global_batch": 64},
    "parallel": {"tensor": 8, "pipeline": 8, "sequence_parallel": True},
    "cluster": {"gpu": "a100-80gb"},
}


def asked(**changes: Any) -> dict[str, Any]:
    return estimate(parse_estimate_request({**PLAN, **changes})).to_json()


def parts(found: dict[str, Any]) -> float:
    time = found["time"]
    names = ("compute", "recompute", "bubble", "exposed_communication", "optimizer")
    return float(sum(time[f"{name}_seconds"] for name in names))


@pytest.mark.parametrize(
    "parallel",
    [
        {"tensor": 8, "pipeline": 8, "sequence_parallel": True},
        {"tensor": 8, "pipeline": 8, "virtual_stages": 3, "schedule": "interleaved"},
        {"tensor": 8, "pipeline": 8, "schedule": "zero-bubble"},
        {"tensor": 4, "data": 4, "zero": 1},
        {"data": 64, "zero": 3},
        {"tensor": 2, "context": 4, "data": 8, "zero": 2},
    ],
    ids=str,
)
@pytest.mark.parametrize("offload", ["none", "optimizer"])
def test_the_parts_of_a_step_sum_to_it(parallel: dict[str, Any], offload: str) -> None:
    found = asked(parallel=parallel, training={"sequence": 2048, "global_batch": 64, "offload": offload})
    assert parts(found) == pytest.approx(found["time"]["step_seconds"])
    shown = sum(row["exposed_seconds"] for row in found["communication"])
    if offload == "none":
        assert shown == pytest.approx(found["time"]["exposed_communication_seconds"])
    assert all(row["exposed_seconds"] <= row["seconds"] * (1 + 1e-9) for row in found["communication"])


def test_a_large_matrix_product_reaches_its_share_of_the_peak_and_a_thin_one_memorys() -> None:
    large = 2 * 16384**3 / matmul_seconds(A100, 16384, 16384, 16384, 2.0)
    assert 0.95 * A100.matmul_flops_per_second < large <= A100.matmul_flops_per_second
    thin = matmul_seconds(A100, 16384, 16384, 16, 2.0)  # 16 products for every value written
    written = 2.0 * 16384**2 / A100.memory_bytes_per_second
    assert written < thin < 1.2 * written


def test_more_rows_never_take_less_time() -> None:
    times = [matmul_seconds(A100, rows, 4096, 4096, 2.0) for rows in range(1, 4096, 37)]
    assert times == sorted(times)


def test_power_holds_the_clock_down_where_the_peak_would_draw_more() -> None:
    """An A100 has the watts for its peak; an H100 has not, and with 500 W holds √(5/7) of what it does with 700."""
    a100, h100, cool = (
        sustained_share(GPUS[name].peaks["16-bit"], GPUS[name].power_watts, FITTED)
        for name in ("a100-80gb", "h100-80gb", "h100-96gb")
    )
    assert h100 < a100 <= FITTED.matmul_efficiency
    assert cool / h100 == pytest.approx((500 / 700) ** 0.5)
    assert sustained_share(459e12, None, FITTED) == FITTED.matmul_efficiency


def test_attention_of_narrow_heads_waits_for_the_softmax() -> None:
    """The same FLOPs in twice as many heads of half the width: twice the scores to exponentiate."""
    wide, narrow = (
        sum(attention_seconds(H100.attention, scores, 8192, width, width)) for scores, width in ((1e9, 128), (2e9, 64))
    )
    assert narrow > 1.1 * wide


def test_backward_is_about_twice_forward_and_full_recomputation_a_forward_more() -> None:
    plan = plan_of(parse_estimate_request({**PLAN, "training": {"sequence": 2048, "recompute": "full"}}))
    found = layer_seconds(plan.layer(False), A100)
    assert 1.7 < found.backward / found.forward < 2.3
    assert found.recompute == pytest.approx(found.forward)


def test_a_layer_of_22b_takes_what_its_paper_measured() -> None:
    """Korthikanti et al. 2022, table 4: 7.7 ms forward on eight A100s, all-reduces included; 2 of them here."""
    shape = {"layers": 48, "hidden": 6144, "heads": 64, "vocab": 51200, "biases": True}
    request = {
        "model": shape,
        "training": {"sequence": 2048, "micro_batch": 4, "attention": "full"},
        "parallel": {"tensor": 8},
        "cluster": {"gpu": "a100-80gb"},
        "profile": "megatron",
    }
    plan = plan_of(parse_estimate_request(request))
    communication = estimate(parse_estimate_request(request)).communication
    (row,) = [row for row in communication if "forward" in row.name]
    forward = layer_seconds(plan.layer(False), A100).forward + 2 * row.seconds / row.count_per_step
    assert forward == pytest.approx(7.7e-3, rel=0.08)


@pytest.mark.parametrize(
    ("schedule", "chunks", "counts"),
    [
        ("gpipe", 1, (1, 4, 8, 32)),
        ("1f1b", 1, (1, 4, 8, 32)),
        ("interleaved", 3, (8, 32)),
        ("zero-bubble", 1, (1, 2, 8, 32)),
        ("zbv", 2, (1, 8, 32)),
        ("dualpipev", 2, (16, 32)),
    ],
)
def test_steps_of_equal_stages_are_those_of_the_simulation(schedule: str, chunks: int, counts: tuple[int, ...]) -> None:
    """Passes of one unit on eight stages; within 4 %, and to the last unit where there is a closed form."""
    each = ChunkSeconds(*(1.0 / chunks for _ in range(3)))
    stage = StageSeconds(forward=1.0, backward=2.0, recompute=0.0, weight_gradients=1.0, attention=0.0, exposed=0.0)
    for m in counts:
        request = {**PLAN, "training": {"sequence": 2048, "global_batch": m}}
        request["parallel"] = {"tensor": 8, "pipeline": 8, "virtual_stages": chunks, "schedule": schedule}
        plan = plan_of(parse_estimate_request(request))
        found = m * stage.busy + idle_seconds(plan, [stage] * 8, 0)
        run = simulate_pipeline(order(schedule, 8, m, chunks), [each] * (8 * chunks))
        exact = schedule in ("gpipe", "1f1b", "interleaved")
        assert found == pytest.approx(run.step_seconds, rel=1e-9 if exact else 0.04)


@pytest.mark.parametrize("slow", [0, 3, 7])
def test_a_slow_stage_costs_exactly_what_the_simulation_says(slow: int) -> None:
    seconds = [3.0] * 8
    seconds[slow] = 4.5
    chunks = [ChunkSeconds(each / 3, each / 3, each / 3) for each in seconds]
    run = simulate_pipeline(order("1f1b", 8, 32), chunks)
    fill = fill_seconds([(each / 3, each) for each in seconds], slow)
    assert run.step_seconds == pytest.approx(32 * 4.5 + fill)


def test_stages_of_any_seconds_are_within_six_per_cent_of_the_simulation() -> None:
    source = random.Random(5)
    for _ in range(60):
        pipeline, m = source.choice([2, 4, 8]), source.choice([8, 16, 32])
        stages = [(forward := source.uniform(1, 1.6), forward * source.uniform(2.8, 3.3)) for _ in range(pipeline)]
        chunks = [ChunkSeconds(forward, (busy - forward) / 2, (busy - forward) / 2) for forward, busy in stages]
        slowest = max(range(pipeline), key=lambda index: stages[index][1])
        found = m * stages[slowest][1] + fill_seconds(stages, slowest)
        run = simulate_pipeline(order("1f1b", pipeline, m), chunks)
        assert found == pytest.approx(run.step_seconds, rel=0.06)


def test_bubbles_shrink_with_chunks_and_with_zero_bubble() -> None:
    def bubble(**parallel: Any) -> float:
        return float(asked(parallel={"tensor": 8, "pipeline": 8, **parallel})["pipeline"]["bubble_fraction"])

    plain, chunked = bubble(), bubble(virtual_stages=3, schedule="interleaved")
    assert plain == pytest.approx(7 / 71, abs=0.02)
    # the head makes the last stage slower: the others wait for it besides
    assert 7 / (3 * 64 + 7) < chunked < 7 / (3 * 64 + 7) + 0.03
    assert bubble(schedule="zero-bubble") < plain


def test_what_a_slower_link_costs_shows() -> None:
    fast, slow = (asked(cluster={"gpu": "a100-80gb", "intra_node_bytes_per_second": speed}) for speed in (3e11, 3e10))
    assert slow["time"]["exposed_communication_seconds"] > 5 * fast["time"]["exposed_communication_seconds"]
    assert slow["time"]["compute_seconds"] == fast["time"]["compute_seconds"]


def test_offload_waits_for_the_host() -> None:
    """An eighth of 8B parameters: 12 bytes read and written at 25 GB/s of host memory."""
    here, away = (
        asked(model="llama-3-8b", training={"sequence": 2048, "offload": offload}, parallel={"data": 8, "zero": 2})[
            "time"
        ]
        for offload in ("none", "optimizer")
    )
    assert away["optimizer_seconds"] == pytest.approx(8030261248 / 8 * 24 / 25e9)
    assert away["step_seconds"] > here["step_seconds"]


def test_fp8_speeds_up_matrices_alone_and_needs_a_gpu_that_has_it() -> None:
    fp8 = device_of(GPUS["h100-80gb"], "fp8-mixed")
    assert fp8.matmul_flops_per_second == pytest.approx(2 * H100.matmul_flops_per_second, rel=0.01)
    assert fp8.attention == H100.attention
    with pytest.raises(SpecError) as raised:
        asked(training={"precision": "fp8-mixed"})
    assert [violation.field for violation in raised.value.violations] == ["training.precision"]
    given = asked(training={"precision": "fp8-mixed"}, cluster={"gpu": "a100-80gb", "peak_flops": 6e14})
    assert given["time"]["step_seconds"] > 0
