"""Model FLOPs by hand and by theory, and what a run says of its use of the machine."""

from __future__ import annotations

import pytest

from app.theory.compute import attention_flops, training_flops
from app.theory.transformer import active_parameter_count, tensors
from labs.probes.throughput import model_flops_per_token
from labs.spec import Model
from tests.labs.ranks import DDP, twelve_rows

SHAPES = [
    Model(layers=2, hidden=64, heads=4, kv_heads=4, ffn_hidden=256, vocab=256),
    Model(layers=3, hidden=96, heads=6, kv_heads=2, ffn_hidden=200, vocab=512, gated_mlp=True, tied_embeddings=False),
    Model(layers=2, hidden=64, heads=4, kv_heads=4, ffn_hidden=256, vocab=256, experts=4, active_experts=2),
]


@pytest.mark.parametrize("model", SHAPES, ids=["plain", "grouped-gated", "mixture"])
def test_model_flops_are_six_for_every_matrix_weight_a_token_meets_and_attentions_own(model):
    """Norms and the input's tables are no products; a tied table is one at the output."""
    vectors = sum(tensor.size for tensor in tensors(model, 32) if len(tensor.shape) == 1)
    looked_up = 32 * model.hidden + (0 if model.tied_embeddings else model.vocab * model.hidden)
    weights = active_parameter_count(model, 32) - vectors - looked_up
    by_theory = training_flops(weights, 1) + attention_flops(1, model.layers, model.hidden, 32)
    assert model_flops_per_token(model, 32) == pytest.approx(by_theory, rel=1e-12)


@pytest.mark.slow
def test_a_run_says_how_much_of_this_machine_it_used(run):
    summary = run(twelve_rows(DDP, 2, 3, 2)).summary()
    assert 1e8 < summary["peak_flops_per_second"] < 1e14
    assert summary["mfu"] == pytest.approx(summary["model_flops_per_second"] / summary["peak_flops_per_second"])
    assert 0 < summary["mfu"] < 1
