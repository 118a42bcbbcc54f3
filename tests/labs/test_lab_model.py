"""The plain model and its data, without any parallelism."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext

import pytest
import torch
from torch.autograd.graph import saved_tensors_hooks

from labs.data import Batches, draw_passages, load_text
from labs.model import build_model, count_parameters
from labs.norm import RMSNorm
from labs.parallel.optimizers import LocalOptimizer
from labs.parallel.strategy import Strategy, train_step
from labs.rotary import Rotary
from labs.spec import Model, RunTraining
from tests.labs.ranks import SMALL
from tests.labs.test_ledger import PARAMETERS

CPU = torch.device("cpu")


def build(seed: int = 1, **changes: object):
    return build_model(Model(**{**SMALL, **changes}), 32, seed)


def some_batch(rows: int = 2):
    passages = draw_passages(load_text(), 32, rows, (1, 1))
    return passages[:, :-1], passages[:, 1:]


def test_parameters_are_those_counted_by_hand():
    assert count_parameters(build()) == PARAMETERS


@pytest.mark.parametrize(
    ("changes", "extra"),
    [
        ({"tied_embeddings": False}, 256 * 64),
        ({"kv_heads": 2}, -2 * 2 * 64 * 32),
        ({"gated_mlp": True}, 2 * 64 * 256),
        ({"ffn_hidden": 128}, -2 * 2 * 64 * 128),
        ({"positions": "rotary"}, -32 * 64),
        ({"norm": "rms"}, -(2 * 2 + 1) * 64),
    ],
)
def test_shapes_change_the_count_as_they_should(changes, extra):
    model = build(**changes)
    assert count_parameters(model) == PARAMETERS + extra
    model(*some_batch()).backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


def test_initial_weights_depend_on_the_seed_alone():
    torch.manual_seed(7)
    first = build().state_dict()
    torch.manual_seed(8)
    second = build().state_dict()
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert not torch.equal(first["tokens.weight"], build(seed=2).state_dict()["tokens.weight"])


def test_no_position_sees_a_later_one():
    """Only the last token is changed, and what the last position says is left out: the loss stays as it was."""
    model = build()
    tokens, targets = some_batch(1)
    changed = tokens.clone()
    changed[0, -1] += 1
    without_last = targets.clone()
    without_last[0, -1] = -100  # cross entropy's mark for "ignore"
    assert torch.allclose(model(changed, without_last), model(tokens, without_last), rtol=1e-7)
    assert not torch.allclose(model(changed, targets), model(tokens, targets), rtol=1e-6)


class NoProbes:
    """A step that nobody watches."""

    def passing(self, what: str, stage: int, micro_batch: int) -> AbstractContextManager[None]:
        return nullcontext()

    def sending(self, phase: str, messages: Iterable[torch.Tensor]) -> None:
        pass

    def waiting(self, stage: int) -> AbstractContextManager[None]:
        return nullcontext()

    def updating(self) -> AbstractContextManager[None]:
        return nullcontext()


def test_micro_batches_add_up_to_the_whole_batch():
    """With SGD, for AdamW divides a gradient's scale out again and would hide a wrong one."""

    def weights_after_a_step(micro_batches: int, micro_batch: int) -> torch.Tensor:
        model = build()
        training = RunTraining(sequence=32, micro_batches=micro_batches, micro_batch=micro_batch)
        batch = Batches(load_text(), training, 0, 1, CPU).of_step(1)
        optimizer = LocalOptimizer(torch.optim.SGD(model.parameters(), lr=1.0))
        train_step(Strategy([model], optimizer), batch, NoProbes())
        return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])

    assert torch.allclose(weights_after_a_step(3, 2), weights_after_a_step(1, 6), atol=1e-6)


def test_grouped_queries_with_equal_heads_are_plain_attention():
    """Two key/value heads that serve two queries each, against four heads with the same weights repeated."""
    grouped, plain = build(kv_heads=2), build()
    weights = grouped.state_dict()
    for name in [name for name in weights if name.endswith(("key.weight", "value.weight"))]:
        weights[name] = weights[name].view(2, 16, 64).repeat_interleave(2, dim=0).reshape(64, 64)
    plain.load_state_dict(weights)
    assert torch.allclose(grouped(*some_batch()), plain(*some_batch()), rtol=1e-5)


def test_a_turned_score_depends_on_the_distance_alone():
    """The same query and key, everywhere in the row: equal scores along every diagonal, but not across."""
    rotary, torch_seed = Rotary(16), torch.manual_seed(3)
    q, k = (torch.randn(1, 1, 1, 16, generator=torch_seed).expand(1, 1, 8, 16) for _ in range(2))
    scores = (rotary(q) @ rotary(k).transpose(-2, -1))[0, 0]
    for distance in range(-7, 8):
        diagonal = scores.diagonal(distance)
        assert torch.allclose(diagonal, diagonal[0].expand_as(diagonal), atol=1e-5)
    assert scores[0].std() > 0.1


def test_a_turn_is_that_of_a_complex_number():
    """Pair i at place p times e^(ip·θ_i), as Su et al. 2021, equation 34, have it."""
    x = torch.randn(2, 3, 5, 8, generator=torch.manual_seed(3), dtype=torch.float64)
    angles = torch.arange(5.0)[:, None] * 10_000 ** (-torch.arange(0, 8, 2) / 8)
    turned = torch.complex(x[..., :4], x[..., 4:]) * torch.polar(torch.ones_like(angles), angles)
    assert torch.allclose(Rotary(8)(x), torch.cat([turned.real, turned.imag], dim=-1).double(), atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_the_rms_norm_is_torchs_and_keeps_less(dtype):
    """The same values and gradients; for backward its input, its weight and a number for each token."""
    x = torch.randn(2, 8, 16, generator=torch.manual_seed(3)).to(dtype)
    ours, theirs, found = RMSNorm(16).to(dtype), torch.nn.RMSNorm(16, eps=1e-5).to(dtype), []
    kept: list[tuple[int, ...]] = []
    for norm in (ours, theirs):
        torch.nn.init.normal_(norm.weight, generator=torch.manual_seed(4))
        given = x.clone().requires_grad_()
        kept.clear()
        with saved_tensors_hooks(lambda tensor: (kept.append(tuple(tensor.shape)), tensor)[1], lambda tensor: tensor):
            out = norm(given)
        if norm is ours:
            assert kept == [(2, 8, 16), (16,), (2, 8, 1)]
        (out.float() ** 3).sum().backward()
        found.append((out, given.grad, norm.weight.grad))
    for mine, torchs in zip(*found, strict=True):
        assert mine.dtype == torchs.dtype == dtype
        assert torch.allclose(mine, torchs, rtol=2e-2 if dtype == torch.bfloat16 else 1e-4, atol=1e-5)


def test_no_rotary_position_sees_a_later_one():
    model = build(positions="rotary", norm="rms", gated_mlp=True)
    tokens, targets = some_batch(1)
    changed, without_last = tokens.clone(), targets.clone()
    changed[0, -1] += 1
    without_last[0, -1] = -100
    assert torch.allclose(model(changed, without_last), model(tokens, without_last), rtol=1e-7)
    swapped = tokens.clone()
    swapped[0, [3, 9]] = tokens[0, [9, 3]]
    assert not torch.allclose(model(swapped, without_last), model(tokens, without_last), rtol=1e-6)


def test_the_text_is_of_a_decent_size():
    text = load_text()
    assert 30_000 < len(text) < 40_000
    assert text.max() < 128  # plain ASCII


def test_targets_are_the_next_bytes():
    batches = Batches(load_text(), RunTraining(sequence=16, micro_batch=3), 0, 1, CPU)
    ((tokens, targets),) = batches.of_step(5)
    assert tokens.shape == targets.shape == (3, 16)
    assert torch.equal(tokens[:, 1:], targets[:, :-1])
    passage = bytes(tokens[0].tolist())
    assert passage in bytes(load_text().tolist())


@pytest.mark.parametrize(("ranks", "micro_batches", "micro_batch"), [(1, 1, 12), (2, 3, 2), (3, 4, 1), (4, 1, 3)])
def test_the_ranks_share_one_global_batch_out(ranks, micro_batches, micro_batch):
    training = RunTraining(sequence=16, micro_batch=micro_batch, micro_batches=micro_batches)
    mine = [
        tokens for rank in range(ranks) for tokens, _ in Batches(load_text(), training, rank, ranks, CPU).of_step(4)
    ]
    assert torch.equal(torch.cat(mine), draw_passages(load_text(), 16, 12, (training.seed, 4))[:, :-1])


def test_each_step_and_each_seed_draws_its_own_batch():
    drawn = [draw_passages(load_text(), 16, 4, key) for key in [(1, 1), (1, 2), (2, 1), (1, 1)]]
    assert torch.equal(drawn[0], drawn[3])
    assert not torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[0], drawn[2])
