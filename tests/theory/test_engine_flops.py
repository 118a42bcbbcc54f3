"""FLOPs of a token: by layer, stage and model, against published formulas and counting by hand."""

from __future__ import annotations

import pytest

from app.theory.planner import estimate, parse_estimate_request
from app.theory.planner.engine.flops import hardware_flops, model_flops, stage_flops
from app.theory.planner.engine.resolve import plan_of
from app.theory.planner.engine.shapes import forward_flops, layer_flops
from app.theory.presets import PRESETS
from app.theory.transformer import active_parameter_count

GPT3 = PRESETS["gpt-3-175b"].model


def test_a_gpt_layer_is_24h2_and_4sh() -> None:
    """Narayanan et al. 2021, appendix: 24Bsh² + 4Bs²h a layer forward."""
    found = layer_flops(GPT3, False, 2048)
    assert found.matrices == 24 * 12288**2
    assert found.attention == 4 * 2048 * 12288


def test_training_is_the_papers_formula() -> None:
    """72BLsh²(1 + s/6h + V/12hL) over the Bs tokens of a batch."""
    plan = plan_of(parse_estimate_request({"model": "gpt-3-175b"}))
    h, layers, s, vocab = 12288, 96, 2048, 50257
    assert model_flops(plan) == pytest.approx(72 * layers * h**2 * (1 + s / (6 * h) + vocab / (12 * h * layers)))


@pytest.mark.parametrize("name", ["llama-3-8b", "llama-2-70b", "mixtral-8x7b", "deepseek-v3"])
def test_matrices_and_head_are_two_flops_a_parameter_a_token_meets(name: str) -> None:
    """Norms and the input table multiply nothing: what is left of the active count is less than 1 %."""
    model = PRESETS[name].model
    found = forward_flops(model, 4096)
    met = active_parameter_count(model) - model.vocab * model.hidden
    assert found.matrices + found.head == pytest.approx(2 * met, rel=0.01)


def test_stages_sum_to_the_model() -> None:
    plan = plan_of(parse_estimate_request({"model": "llama-3-405b", "parallel": {"pipeline": 16}}))
    stages = [stage_flops(plan, stage) for stage in plan.stages]
    whole = forward_flops(plan.model, plan.training.sequence)
    assert sum(stage.total for stage in stages) == pytest.approx(whole.total)
    assert [stage.head for stage in stages] == [*(0.0,) * 15, whole.head]
    assert stages[0].matrices / 7 == pytest.approx(stages[1].matrices / 8)


@pytest.mark.parametrize(
    ("recompute", "profile", "extra"),
    [("none", "megatron", 0.0), ("full", "megatron", 1.0), ("selective", "fsdp2", 0.5)],
)
def test_recomputation_is_booked_as_hardware_flops(recompute: str, profile: str, extra: float) -> None:
    request = {"model": "llama-3-8b", "training": {"recompute": recompute}, "profile": profile}
    plan = plan_of(parse_estimate_request(request))
    whole = forward_flops(plan.model, plan.training.sequence)
    repeated = whole.matrices + (whole.attention if recompute == "full" else 0.0)
    assert hardware_flops(plan) - model_flops(plan) == pytest.approx(extra * repeated)


def test_the_definition_of_mfu_is_a_choice_and_all_are_shown() -> None:
    """Three times forward, with attention whole, halved or left out: 6N counts norms and tables, products do not."""
    plan = {
        "model": "llama-3-8b",
        "training": {"sequence": 8192},
        "parallel": {"data": 8, "zero": 3},
        "cluster": {"gpu": "h100-80gb"},
    }
    shown = estimate(parse_estimate_request(plan)).mfu_by_definition
    for definition in ("6n", "attention", "causal-attention"):
        found = estimate(parse_estimate_request({**plan, "mfu": definition})).mfu
        wanted = {"6n": shown.six_n, "attention": shown.attention, "causal-attention": shown.causal_attention}
        assert found == pytest.approx(wanted[definition])
    assert shown.six_n is not None
    assert shown.attention is not None
    assert shown.causal_attention is not None
    step_flops = 12 * 32 * 4096 * 8192  # attention of a token, forward and backward
    assert shown.attention / shown.causal_attention == pytest.approx(
        1 + (step_flops / 2) / (6 * (8030261248 - 128256 * 4096) + step_flops / 2), rel=1e-3
    )
    assert shown.six_n < shown.causal_attention < shown.attention
