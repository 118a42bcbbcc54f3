"""What the strategy problems SP1 to SP5 ask for stands on the planner's page."""

from __future__ import annotations

import json
from urllib.parse import parse_qsl, urlsplit

import pytest

from app.planner.service import plan
from app.planner.training import training_of
from tests.planner.asking import OWN_7B


def test_seven_billion_on_eight_gpus_at_every_stage() -> None:
    """ZeRO (Rajbhandari et al. 2020), section 5: 16N, 4N + 12N/8, 2N + 14N/8, 16N/8."""
    made = plan(OWN_7B)
    assert [stage.total for stage in made.stages] == pytest.approx([112e9, 38.5e9, 26.25e9, 14e9])
    assert made.errors == {}
    assert made.title == "7B parameters on 8 GPUs"


def test_a_size_of_ones_own_gets_a_shape_that_can_be_edited() -> None:
    """OPT-30B (Zhang et al. 2022): 48 layers of 7,168 with 56 heads; 30B over tensor 4 × pipeline 2, ZeRO-1 over 64
    ranks, are 7.5 + 7.5 + 12 × 3.75/64 GB (F27)."""
    sized = {"model": "sized", "architecture": "gpt", "parameters": "30B", "ranks": "512"}
    axes = {"tensor": "4", "pipeline": "2", "zero": "1", "recompute": "none", "global_batch": "4.2M tokens"}
    made = plan(sized | axes)
    assert made.errors == {}
    assert made.form.shape is not None
    assert (made.form.shape.layers, made.form.shape.hidden, made.form.shape.heads) == (48, 7168, 56)
    assert made.parameters == pytest.approx(30e9, rel=0.005)
    state = made.estimate.memory.per_rank_bytes
    assert state.parameters + state.gradients + state.optimizer == pytest.approx(15.7e9, rel=0.02)
    assert (made.global_batch, made.batch_tokens) == (1024, 4_194_304), "what was said in tokens"
    assert made.shape_text == "48 layers of 7,168, 56 heads, derived"
    edited = plan(sized | {"layers": "40", "hidden": "8192"})
    assert edited.form.shape is not None
    assert (edited.form.shape.layers, edited.form.shape.heads) == (40, 64)
    assert edited.parameters == pytest.approx(30e9, rel=0.005), "the MLP's width makes up for it"
    assert "kv_heads" in plan(sized | {"kv_heads": "5"}).errors
    assert "50M" in plan(sized | {"parameters": "3"}).errors["parameters"]


def test_a_budget_becomes_a_model_its_tokens_days_and_money() -> None:
    """C = 120 N²: 1e21 FLOPs are 2.89B on 57.7B tokens, and 1B on 167B; 512 H100 at 40 % for 90 days are 1.575e24."""
    small = training_of(
        plan({"model": "sized", "parameters": "1B", "budget": "1e21 FLOPs", "mfu": "40 %", "price": "2"})
    )
    this, best = small.models
    assert this.tokens == pytest.approx(1e21 / 6 / this.parameters)
    assert (best.parameters, best.tokens) == pytest.approx((2.887e9, 57.7e9), rel=1e-3)
    assert best.cost == pytest.approx(1e21 / (989.4e12 * 0.4) / 3600 * 2, rel=1e-3)
    assert plan(dict(parse_qsl(urlsplit(best.address).query))).parameters == pytest.approx(2.89e9, rel=0.005)
    large = {"model": "sized", "architecture": "gpt", "parameters": "30B", "ranks": "512", "mfu": "40 %"}
    whole = training_of(plan(large | {"budget": "90 days"}))
    assert whole.models[0].flops == pytest.approx(1.575e24, rel=1e-3)
    assert whole.models[1].parameters == pytest.approx(114.6e9, rel=1e-3)
    assert whole.models[0].overtraining == pytest.approx(14.6, rel=5e-3)
    assert whole.models[0].seconds == pytest.approx(90 * 86400)
    assert whole.failures.mtbf_seconds / 3600 == pytest.approx(50677 / 512, rel=1e-3)
    assert whole.failures.interval_seconds / 60 == pytest.approx(109, rel=5e-3)
    hours = training_of(plan(large | {"budget": "1105920 GPU-hours"})).models[0]  # 512 × 90 × 24
    assert hours.flops == pytest.approx(1.575e24, rel=1e-3)
    for wrong in ("7", "2 TB", "soon"):
        assert "GPU-hours" in plan({"budget": wrong}).errors["budget"]


def test_gradients_over_a_nodes_one_port_take_what_a_ring_takes() -> None:
    """E033: 7B in bf16 on 64 GPUs are 27.56 GB each, 2.205 s over a port of 100 Gb/s a node; 16,384 tokens a GPU at
    half of an A100's peak are 4.41 s."""
    port = {"inter_node_bytes_per_second": 100e9 / 8 / 8}
    ddp = {"model": "sized", "architecture": "gpt", "parameters": "7B", "ranks": "64", "gpu": "a100-80gb", "zero": "0"}
    made = plan(
        ddp | {"profile": "zero-paper", "measured": json.dumps(port), "budget": "1048576 tokens", "mfu": "50 %"}
    )
    (row,) = made.estimate.communication
    assert row.wire_bytes_per_rank_per_step == pytest.approx(27.56e9, rel=1e-3)
    assert row.seconds == pytest.approx(2.205, rel=3e-3)
    assert training_of(made).models[0].seconds == pytest.approx(4.41, rel=3e-3)
    levels = plan(ddp | {"inter_node": "12.5 Gb/s"}).in_two_levels
    assert levels is not None
    assert (levels.node_bytes, levels.seconds) == pytest.approx((24.5e9, 1.96), rel=3e-3)


def test_scores_that_are_kept_are_counted() -> None:
    """Korthikanti et al. 2022: 34sbh and 5as/h more, 14.3 and 47.8 GB of 40 layers of 5,120 with 40 heads."""
    form = {"model": "gpt-3-13b", "profile": "zero-paper", "recompute": "none", "sequence": "2048", "gpu": "a100-80gb"}
    held = [
        plan(form | {"zero": "2", "attention": each}).estimate.memory.per_rank_bytes.activations
        for each in ("flash", "full")
    ]
    assert held == pytest.approx([14.3e9, 47.8e9], rel=0.035)  # with the head's logits on top
