"""The plain model and its data, without any parallelism."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext

import pytest
import torch

from labs.data import Batches, draw_passages, load_text
from labs.model import build_model, count_parameters
from labs.parallel.optimizers import LocalOptimizer
from labs.parallel.strategy import Strategy, train_step
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
