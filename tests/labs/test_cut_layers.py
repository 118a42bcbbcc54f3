"""A layer's work cut over ranks: every gradient is one process's, to rounding in fp64. The ranks are threads."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from labs.model import GPT, Attention, CoreAttention, FullAttention, build_model, write_attention_out
from labs.parallel.context import Part, RingAttention, Zigzag, split_context
from labs.parallel.expert import split_experts
from labs.parallel.mesh import Axis
from labs.parallel.strategy import whole_gradients
from labs.parallel.tensor import Cut, VocabularyNextToken, split_tensor
from labs.spec import Model
from tests.labs.threads import together

SEQUENCE = 16
SHAPES: dict[str, dict[str, Any]] = {
    "plain": {},
    "other": {"kv_heads": 4, "gated_mlp": True, "tied_embeddings": False, "ffn_hidden": 24},
}
GROUP: Any = object()  # the threads ask for no group, but alone there is none


def build(**shape: Any) -> GPT:
    plain = {"layers": 2, "hidden": 32, "heads": 8, "vocab": 64}
    return build_model(Model(**{**plain, **shape}), SEQUENCE, seed=1).double()


def batch(seed: int = 1, rows: int = 3) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    tokens, targets = (torch.randint(64, (rows, SEQUENCE), generator=generator) for _ in range(2))
    return tokens, targets


def gradients(model: GPT) -> dict[str, Tensor]:
    return {name: each.grad for name, each in model.named_parameters() if each.grad is not None}


def alone(*batches: tuple[Tensor, Tensor], **shape: Any) -> tuple[float, dict[str, Tensor]]:
    """Mean loss over `batches` of equal size, and its gradients, by one process."""
    model = build(**shape)
    losses = [model(*each) / len(batches) for each in batches]
    sum(losses).backward()
    return sum(loss.item() for loss in losses), gradients(model)


def put_together(name: str, parts: list[Tensor], whole: Tensor) -> Tensor:
    """A matrix from its parts along the one dimension in which they are smaller; what is not cut is everybody's."""
    smaller = [dim for dim in range(whole.dim()) if parts[0].shape[dim] < whole.shape[dim]]
    if smaller:
        return torch.cat(parts, smaller[0])
    assert all(torch.equal(part, parts[0]) for part in parts), f"{name} differs between ranks"
    return parts[0]


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("sequence_parallel", [False, True], ids=["whole", "sequence-parallel"])
@pytest.mark.parametrize("ranks", [2, 4])
def test_tensor_ranks_have_one_processs_gradients(ranks: int, sequence_parallel: bool, shape: dict[str, Any]) -> None:
    def work(rank: int) -> tuple[float, dict[str, Tensor]]:
        model = build(**shape)
        finish = split_tensor(model, Axis("tensor", ranks, rank, GROUP), sequence_parallel)
        loss = model(*batch())
        loss.backward()
        for each in finish:
            each(whole_gradients)
        return loss.item(), gradients(model)

    loss, expected = alone(batch(), **shape)
    found = together(ranks, work)
    assert [each for each, _ in found] == pytest.approx([loss] * ranks, rel=1e-13)
    names = {name.removesuffix(".weight"): whole for name, whole in expected.items()}
    of_rank = [{name.removesuffix(".weight"): each for name, each in mine.items()} for _, mine in found]
    assert of_rank[0].keys() == names.keys()
    for name, whole in names.items():
        joined = put_together(name, [mine[name] for mine in of_rank], whole)
        torch.testing.assert_close(joined, whole, rtol=1e-11, atol=1e-16, msg=name)


def test_a_tensor_rank_holds_its_part_only() -> None:
    model = build()
    split_tensor(model, Axis("tensor", 4, 1, GROUP), sequence_parallel=False)
    assert all(parameter.untyped_storage().nbytes() == parameter.nbytes for parameter in model.parameters())
    cut, whole = (
        sum(each.numel() for name, each in each_model.named_parameters() if each.dim() == 2 and "positions" not in name)
        for each_model in (model, build())
    )
    assert 4 * cut == whole


def test_a_target_of_another_ranks_words_counts_there_alone() -> None:
    """All targets are rank 1's. The logits are so large that only taking off the largest saves the exponentials."""
    x, table = torch.randn(1, 4, 8).double() * 100, torch.randn(6, 8).double()
    targets = torch.tensor([[3, 4, 5, 3]])

    def work(rank: int) -> Tensor:
        loss: Tensor = VocabularyNextToken(Cut(Axis("tensor", 2, rank, GROUP), False))(x, table.chunk(2)[rank], targets)
        return loss

    whole = functional.cross_entropy((x @ table.t()).flatten(0, 1), targets.flatten())
    assert all(torch.allclose(found, whole, rtol=1e-12) for found in together(2, work))


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_context_ranks_gradients_average_to_one_processs(ranks: int, shape: dict[str, Any]) -> None:
    def work(rank: int) -> tuple[float, dict[str, Tensor]]:
        model = build(**shape)
        mine = split_context(model, Axis("context", ranks, rank, GROUP), SEQUENCE)
        loss = model(*(mine(each) for each in batch()))
        loss.backward()
        return loss.item(), gradients(model)

    loss, expected = alone(batch(), **shape)
    found = together(ranks, work)
    assert sum(each for each, _ in found) / ranks == pytest.approx(loss, rel=1e-13)
    for name, whole in expected.items():
        mean = sum(mine[name] for _, mine in found) / ranks
        torch.testing.assert_close(mean, whole, rtol=1e-11, atol=1e-16, msg=name)


def test_tensor_and_context_ranks_fit_into_each_other() -> None:
    """One after the other, in either order: with one rank on the one axis, the other's work is unchanged."""
    model = build()
    split_tensor(model, Axis("tensor", 2, 0, GROUP), sequence_parallel=True)
    split_context(model, Axis("context", 2, 0, GROUP), SEQUENCE)
    assert all(isinstance(block.attention.core, RingAttention) for block in model.blocks)


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_every_query_meets_every_key_up_to_its_own_once(ranks: int) -> None:
    """And all ranks have as much to do, in every round."""
    sequence = 4 * ranks
    where = [Zigzag(rank, ranks, sequence).positions(torch.arange(4)) for rank in range(ranks)]
    assert sorted(torch.cat(where).tolist()) == list(range(sequence))
    met, work = torch.zeros(sequence, sequence, dtype=torch.int), torch.zeros(ranks, ranks, dtype=torch.int)
    for rank in range(ranks):
        for turn in range(ranks):
            part = Part.of(turn, Axis("context", ranks, rank), 4)
            queries, keys = where[rank][part.queries], where[(rank - turn) % ranks][part.keys]
            pairs = torch.ones(len(queries), len(keys), dtype=torch.int)
            pairs = pairs.tril() if part.is_own else pairs
            met[queries[:, None], keys] += pairs
            work[rank, turn] = pairs.sum()
    assert torch.equal(met, torch.ones_like(met).tril())
    assert torch.equal(work, work[:1].expand_as(work))


def test_a_ranks_tokens_stand_where_it_says() -> None:
    rows = torch.arange(SEQUENCE).expand(2, -1)
    for rank in range(4):
        zigzag = Zigzag(rank, 4, SEQUENCE)
        mine = zigzag(rows)
        assert mine.shape == (2, SEQUENCE // 4)
        assert torch.equal(mine[0], zigzag.positions(torch.arange(SEQUENCE // 4)))


MIXTURES: dict[str, dict[str, Any]] = {
    "plain": {"experts": 4, "active_experts": 2},
    "other": {
        "experts": 6,
        "active_experts": 3,
        "shared_experts": 1,
        "expert_ffn_hidden": 16,
        "dense_layers": 1,
        "gated_mlp": True,
    },
}


@pytest.mark.parametrize("shape", MIXTURES.values(), ids=MIXTURES)
def test_expert_ranks_have_one_processs_gradients(shape: dict[str, Any]) -> None:
    """Two ranks with rows of their own: the mean over them of what they share, and each expert's from its rank."""

    def work(rank: int) -> tuple[float, dict[str, Tensor]]:
        model = build(**shape)
        mesh: Any = SimpleNamespace(
            expert=Axis("expert", 2, rank, GROUP), expert_replicas=Axis("expert_replicas"), data=Axis("data", 2, rank)
        )
        finish = split_experts(model, mesh)
        loss = model(*batch(seed=rank))
        loss.backward()
        for each in finish:
            each()
        return loss.item(), gradients(model)

    loss, expected = alone(batch(seed=0), batch(seed=1), **shape)
    found = together(2, work)
    assert sum(each for each, _ in found) / 2 == pytest.approx(loss, rel=1e-13)
    half = shape["experts"] // 2
    for name, whole in expected.items():
        if ".experts." in name:
            before, _, after = name.partition(".experts.")
            number, _, matrix = after.partition(".")
            rank, local = divmod(int(number), half)
            mine = found[rank][1][f"{before}.experts.local.{local}.{matrix}"]
        else:
            mine = sum(each[name] for _, each in found) / 2
        torch.testing.assert_close(mine, whole, rtol=1e-11, atol=1e-16, msg=name)


def test_an_expert_that_nobody_chose_has_a_gradient_of_zero() -> None:
    """So that every rank sends as many gradients, whatever its router did."""
    model = build(experts=32, active_experts=1, layers=1)
    model(*batch(rows=1)).backward()
    chosen = [expert.up.weight.grad.abs().sum().item() > 0 for expert in model.blocks[0].mlp.experts]
    assert not all(chosen)
    assert any(chosen)


def test_the_likeliest_experts_serve_a_token_each_with_its_probability() -> None:
    mixture = build(experts=4, active_experts=2, layers=1).blocks[0].mlp
    x = torch.randn(2, 3, 32).double()
    scores = mixture.router(x).softmax(dim=-1)
    expected = torch.zeros_like(x)
    for row in range(2):
        for place in range(3):
            for expert in scores[row, place].argsort(descending=True)[:2]:
                expected[row, place] += scores[row, place, expert] * mixture.experts[expert](x[row, place])
    assert torch.allclose(mixture(x), expected, rtol=1e-12)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_attention_written_out_is_attention(shape: dict[str, Any]) -> None:
    model = build(**shape)
    write_attention_out(model)
    loss = model(*batch())
    loss.backward()
    expected, of_parameters = alone(batch(), **shape)
    assert loss.item() == pytest.approx(expected, rel=1e-13)
    for name, whole in of_parameters.items():
        torch.testing.assert_close(gradients(model)[name], whole, rtol=1e-11, atol=1e-16, msg=name)


def kept_bytes(run: Callable[[], Tensor]) -> int:
    """What autograd keeps of `run` for backward, each block of memory once."""
    kept: dict[int, Tensor] = {}

    def note(tensor: Tensor) -> Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        run()
    return sum(tensor.untyped_storage().nbytes() for tensor in kept.values())


def test_attention_written_out_keeps_every_pair_of_positions() -> None:
    q, k, v = (torch.randn(2, 4, 64, 8, requires_grad=True) for _ in range(3))
    full, fused = (kept_bytes(lambda core=core: core(q, k, v)) for core in (FullAttention(), CoreAttention()))
    weights = 4 * 2 * 4 * 64 * 64
    queries_keys_values_and_result = 4 * 4 * 2 * 4 * 64 * 8
    assert weights < full < weights + queries_keys_values_and_result
    assert fused == queries_keys_values_and_result + 4 * 2 * 4 * 64  # and the log-sum-exp


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_a_ring_keeps_what_fused_attention_keeps(shape: dict[str, Any]) -> None:
    attention = build(**shape).float().blocks[0].attention
    x = torch.randn(3, SEQUENCE, 32, requires_grad=True)
    fused = kept_bytes(lambda: attention(x))
    attention.core = RingAttention(Axis("context"))
    assert kept_bytes(lambda: attention(x)) == fused


def test_the_plain_model_is_left_as_it_is_by_one_rank() -> None:
    model = build()
    assert split_tensor(model, Axis("tensor"), sequence_parallel=False) == []
    split_context(model, Axis("context"), SEQUENCE)
    assert isinstance(model.blocks[0].attention, Attention)
    assert torch.equal(model(*batch()), build()(*batch()))
