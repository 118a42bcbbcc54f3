"""Model FLOPs by hand and by theory, and what a run says of its use of the machine."""

from __future__ import annotations

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from app.theory.compute import attention_flops, training_flops
from app.theory.transformer import active_parameter_count, tensors
from labs.model import build_model, write_attention_out
from labs.probes.operations import PRODUCTS, Operations
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


class _Seen(TorchDispatchMode):
    """The names of operations, and of those that torch counts FLOPs of."""

    def __init__(self) -> None:
        super().__init__()
        self.every, self.products = set[str](), set[str]()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.every.add(func._opname)
        if func._overloadpacket in flop_registry:
            self.products.add(func._opname)
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("attention", ["flash", "full"])
@pytest.mark.parametrize("model", SHAPES, ids=["plain", "grouped-gated", "mixture"])
def test_whatever_torch_counts_flops_of_is_timed_as_a_product(model, attention):
    """And attention's fused kernels on a CPU, of which torch counts nothing."""
    gpt = build_model(model, 32, seed=0)
    if attention == "full":
        write_attention_out(gpt)
    tokens = torch.zeros(2, 33, dtype=torch.long)
    with _Seen() as seen:
        gpt(tokens[:, :-1], tokens[:, 1:]).backward()
    assert seen.products
    assert seen.products <= PRODUCTS
    assert attention == "full" or {name for name in seen.every if "attention" in name} <= PRODUCTS
    assert not PRODUCTS & {"gelu", "add", "native_layer_norm"}


def test_operations_are_added_up_by_kind_and_the_optimizers_whatever_they_are():
    operations = Operations(torch.device("cpu"))
    assert operations.seconds() is None
    ones, large = torch.ones(64, 64), torch.ones(700, 700)
    for tensor in (ones, ones, large):  # of three steps the middle counts
        operations.start()
        for phase in ("forward", "optimizer"):
            operations.phase = phase
            assert operations.call(torch.ops.aten.mm.default, (tensor, tensor), {})[0, 0] == len(tensor)
    took = operations.seconds()
    assert took is not None
    assert took.others == 0
    kept = [step["products"] for step in operations._steps]
    assert took.products == sorted(kept)[1]
    assert 0 < took.optimizer < max(step["optimizer"] for step in operations._steps)
    assert Operations(torch.device("cuda")).seconds() is None, "a call returns there before its work is done"
