"""Tensor parallelism: every matrix is cut, and each of t ranks computes with its part, for the same rows.

The trick is in which way a matrix is cut. Two matrices follow each other with something in between that needs no
sum: queries, keys and values, then attention head by head, then the output; or up, then the activation, then down.
Cut the first by its outputs (Megatron calls that *column parallel*: it writes XA, with A's columns as outputs): a rank
needs the whole input, and has some heads, or some of the inner values, complete. Cut the second by its inputs (*row
parallel*): a rank needs just those values, and has a term of every output; the sum of the ranks' terms is the result.
So there is one all-reduce behind attention and one behind the MLP, of B × T × H values; and in backward one before
each, because every rank knows only its part's gradient of the input. Four for a layer and micro-batch.

The ends are cut along the vocabulary. A rank looks up the tokens of its part of the table and has zeros for others: the
sum is the embedding (one all-reduce). At the head it has the logits of its part of the words, and these are never put
together: cross entropy needs of all words only the largest logit and the sum of exponentials, and the target's own
logit, three all-reduces of one number for each token. (*Loss parallel*; a vocabulary of 256 gains little, one of
128,000 everything.)

What is not cut, every rank computes alike: norms, residual stream, positions. With *sequence parallelism* that is cut
as well, along T. A sum that every rank needed whole becomes a reduce-scatter, each rank getting its shard of the
positions, and before the next matrix the shards are brought together by an all-gather. That is the same number of
bytes, for an all-reduce is these two; what is saved is activations. To save also those that the matrices need in
backward, a rank keeps its shard only and gathers it once again there: one all-gather more for each pair of matrices,
which is the price. And as each rank's norms and positions have seen one shard only, their gradients are summed over
the ranks when backward is done.

Shoeybi et al. 2019 ("Megatron-LM"), section 3; Korthikanti et al. 2022, section 4.2.2 for sequence parallelism.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.nn import functional

from labs.model import GPT, MLP, Attention, Block, activate, join_heads, split_heads
from labs.parallel.buckets import all_reduce_together
from labs.parallel.mesh import Axis
from labs.parallel.precision import as_multiplied
from labs.parallel.strategy import SharesOf


def split_tensor(model: GPT, tensor: Axis, sequence_parallel: bool) -> list[SumOfGradients]:
    """Cut `model` in place to this rank's part. Returns what its gradients still need when backward is done.

    Whatever of a model is there is cut: a pipeline's stages can be cut, too. Heads, key/value heads, the MLP's inner
    size, the vocabulary, and with sequence parallelism the positions must be divisible by `tensor.size`.
    """
    if tensor.size == 1:
        return []
    cut = Cut(tensor, sequence_parallel)
    for block in model.blocks:
        assert isinstance(block, Block)
        assert isinstance(block.mlp, MLP), "a mixture of experts is not cut"
        block.add_module("attention", TensorAttention(block.attention, cut))
        block.add_module("mlp", TensorMLP(block.mlp, cut))
    if hasattr(model, "tokens"):
        model.add_module("tokens", VocabularyEmbedding(model.tokens, cut))
    if isinstance(head := getattr(model, "head", None), nn.Linear):
        model.add_module("head", VocabularyTable(head.weight, cut))
    model.add_module("next_token", VocabularyNextToken(cut))
    if not sequence_parallel:
        return []
    if (positions := getattr(model, "positions", None)) is not None:
        positions.register_forward_pre_hook(lambda _module, places: (cut.sequence_shard(places[0], dim=0),))
    replicated = [module for name, module in model.named_modules() if name.endswith(("norm", "positions"))]
    return [SumOfGradients(replicated, tensor)]


@dataclass(frozen=True)
class Cut:
    """How a rank enters and leaves what is cut over `tensor`: Megatron's f and g, or with sequence parallelism g and ḡ.

    Between an entrance and an exit a rank works with its part of the matrices, on all T positions.
    """

    tensor: Axis
    sequence_parallel: bool

    def enter(self, x: Tensor, *weights: Tensor) -> tuple[Tensor, ...]:
        """x (B, T, H), or this rank's shard (B, T/t, H), times each of the weights (out/t, H): all (B, T, out/t)."""
        x = as_multiplied(x)
        if self.sequence_parallel:
            multiplied = (as_multiplied(weight) for weight in weights)
            products: tuple[Tensor, ...] = GatherAndMultiply.apply(x, self.tensor, *multiplied)  # type: ignore[no-untyped-call]
            return products
        x = SumInBackward.apply(x, self.tensor)  # type: ignore[no-untyped-call]
        return tuple(functional.linear(x, weight) for weight in weights)

    def leave(self, term: Tensor) -> Tensor:
        """The sum over the ranks of their `term` (B, T, H): the whole of it, or this rank's shard (B, T/t, H)."""
        sum_up = ReduceScatter if self.sequence_parallel else SumInForward
        out: Tensor = sum_up.apply(term, self.tensor)  # type: ignore[no-untyped-call]
        return out

    def rows(self, matrix: Tensor) -> nn.Parameter:
        """This rank's part of a matrix (out, in) cut by its outputs: (out/t, in)."""
        return _part(matrix, self.tensor, dim=0)

    def columns(self, matrix: Tensor) -> nn.Parameter:
        """This rank's part of a matrix (out, in) cut by its inputs: (out, in/t)."""
        return _part(matrix, self.tensor, dim=1)

    def sequence_shard(self, whole: Tensor, dim: int) -> Tensor:
        """This rank's shard of the positions, which are dimension `dim` of `whole`."""
        return whole.chunk(self.tensor.size, dim)[self.tensor.index]


def _part(matrix: Tensor, tensor: Axis, dim: int) -> nn.Parameter:
    assert matrix.shape[dim] % tensor.size == 0, f"{tensor.size} ranks cannot share {matrix.shape[dim]} equally"
    # a copy of its own, or the whole matrix would stay in memory behind it
    mine = matrix.detach().chunk(tensor.size, dim)[tensor.index]
    return nn.Parameter(mine.clone(memory_format=torch.contiguous_format))


# --- the parts of the model


class TensorAttention(nn.Module):
    """Attention with this rank's heads: queries, keys and values cut by their outputs, the output by its inputs."""

    def __init__(self, whole: Attention, cut: Cut) -> None:
        super().__init__()
        self.head_size, self.rotary, self.core, self.cut = whole.head_size, whole.rotary, whole.core, cut
        self.query, self.key, self.value = (cut.rows(each.weight) for each in (whole.query, whole.key, whole.value))
        self.output = cut.columns(whole.output.weight)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.cut.enter(x, self.query, self.key, self.value)
        q, k, v = (split_heads(each, self.head_size) for each in (q, k, v))
        if self.rotary is not None:
            q, k = self.rotary(q), self.rotary(k)
        y = self.core(q, k, v)  # (B, heads/t, T, D)
        return self.cut.leave(functional.linear(join_heads(y), self.output))


class TensorMLP(nn.Module):
    """The MLP with this rank's inner values: up and gate cut by their outputs, down by its inputs."""

    def __init__(self, whole: MLP, cut: Cut) -> None:
        super().__init__()
        self.cut = cut
        self.up = cut.rows(whole.up.weight)
        self.gate = None if whole.gate is None else cut.rows(whole.gate.weight)
        self.down = cut.columns(whole.down.weight)

    def forward(self, x: Tensor) -> Tensor:
        if self.gate is None:
            (up,), gate = self.cut.enter(x, self.up), None
        else:
            up, gate = self.cut.enter(x, self.up, self.gate)
        return self.cut.leave(functional.linear(activate(up, gate), self.down))


class VocabularyTable(nn.Module):
    """This rank's words of an untied output matrix: (V/t, H)."""

    def __init__(self, whole: Tensor, cut: Cut) -> None:
        super().__init__()
        self.weight = cut.rows(whole)


class VocabularyEmbedding(nn.Module):
    """The token table with this rank's words only. Tied, it is the output matrix as well."""

    def __init__(self, whole: nn.Embedding, cut: Cut) -> None:
        super().__init__()
        self.cut = cut
        self.weight = cut.rows(whole.weight)

    def forward(self, tokens: Tensor) -> Tensor:
        """(B, T) token ids to (B, T, H), or this rank's shard (B, T/t, H)."""
        local, is_mine = _local_words(tokens, len(self.weight), self.cut.tensor)
        return self.cut.leave(functional.embedding(local, self.weight) * is_mine[..., None])


class VocabularyNextToken(nn.Module):
    """Logits of this rank's words, and a cross entropy that never has all of them in one place."""

    def __init__(self, cut: Cut) -> None:
        super().__init__()
        self.cut = cut

    def forward(self, x: Tensor, table: Tensor, targets: Tensor) -> Tensor:
        """The mean cross entropy of `targets` (B, T), given x (B, T or T/t, H) and this rank's rows (V/t, H)."""
        (logits,) = self.cut.enter(x, table)  # (B, T, V/t)
        logits = logits.to(torch.promote_types(logits.dtype, torch.float32))  # as NextToken does, and for its reason
        losses: Tensor = VocabularyCrossEntropy.apply(logits, targets, self.cut.tensor)  # type: ignore[no-untyped-call]
        return losses.mean()


def _local_words(words: Tensor, count: int, tensor: Axis) -> tuple[Tensor, Tensor]:
    """`words` as numbers within this rank's `count` words, 0 for those of other ranks; and which are its own."""
    local = words - tensor.index * count
    is_mine = (local >= 0) & (local < count)
    return local * is_mine, is_mine


# --- what is sent, forward and backward. An in-place collective is safe where the tensor was made for it just before.


class SumInBackward(Function):
    """Megatron's f: the ranks share an input, and each knows a term of its gradient."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, tensor: Axis) -> Tensor:
        ctx.tensor = tensor
        return x.view_as(x)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        gradient = gradient.contiguous()
        dist.all_reduce(gradient, group=ctx.tensor.group)
        return gradient, None


class SumInForward(Function):
    """Megatron's g: each rank has a term of the output, and all get its gradient."""

    @staticmethod
    def forward(ctx: Any, term: Tensor, tensor: Axis) -> Tensor:
        ctx.mark_dirty(term)
        dist.all_reduce(term, group=tensor.group)
        return term

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return gradient, None


class ReduceScatter(Function):
    """ḡ: each rank has a term (B, T, H) of the output, and gets the sum of its shard (B, T/t, H)."""

    @staticmethod
    def forward(ctx: Any, term: Tensor, tensor: Axis) -> Tensor:
        ctx.tensor = tensor
        return _reduce_scatter(term, tensor)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return _all_gather(gradient, ctx.tensor), None


class GatherAndMultiply(Function):
    """g, and the matrices that need it: shards (B, T/t, H) are gathered and multiplied by each rank's weights.

    Both in one function, so that backward need not find the gathered input in memory: it gathers the shard again.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, tensor: Axis, *weights: Tensor) -> tuple[Tensor, ...]:
        ctx.tensor = tensor
        ctx.save_for_backward(x, *weights)
        whole = _all_gather(x, tensor)
        return tuple(functional.linear(whole, weight) for weight in weights)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, *weights = ctx.saved_tensors
        whole = _all_gather(x, ctx.tensor).flatten(0, 1)  # (B × T, H)
        term = torch.zeros_like(whole)
        of_weights = []
        for gradient, weight in zip(gradients, weights, strict=True):
            rows = gradient.flatten(0, 1)  # (B × T, out/t)
            of_weights.append(rows.t() @ whole)
            term.addmm_(rows, weight)
        of_x = _reduce_scatter(term.view(*gradients[0].shape[:2], -1), ctx.tensor)
        return of_x, None, *of_weights


def _all_gather(shard: Tensor, tensor: Axis) -> Tensor:
    """(B, T/t, H) of every rank to (B, T, H). Collectives put ranks one after the other along the first dimension."""
    first = shard.transpose(0, 1).contiguous()  # (T/t, B, H)
    whole = first.new_empty(tensor.size * first.shape[0], *first.shape[1:])
    dist.all_gather_single(whole, first, group=tensor.group)
    return whole.transpose(0, 1).contiguous()


def _reduce_scatter(term: Tensor, tensor: Axis) -> Tensor:
    """(B, T, H) summed over the ranks, of which this one gets its shard (B, T/t, H)."""
    first = term.transpose(0, 1).contiguous()  # (T, B, H)
    shard = first.new_empty(first.shape[0] // tensor.size, *first.shape[1:])
    dist.reduce_scatter_single(shard, first, group=tensor.group)
    return shard.transpose(0, 1).contiguous()


class VocabularyCrossEntropy(Function):
    """The cross entropy of every token from logits that are cut along the vocabulary.

    log Σ exp(z) − z_target, with the largest logit taken off all of them first, so that no exponential overflows.
    """

    @staticmethod
    def forward(ctx: Any, logits: Tensor, targets: Tensor, tensor: Axis) -> Tensor:
        """(B, T, V/t) and (B, T), to (B, T)."""
        local, is_mine = _local_words(targets, logits.shape[-1], tensor)
        largest = logits.amax(dim=-1)
        dist.all_reduce(largest, dist.ReduceOp.MAX, group=tensor.group)
        shifted = logits - largest[..., None]
        of_target = shifted.gather(-1, local[..., None]).squeeze(-1) * is_mine
        dist.all_reduce(of_target, group=tensor.group)
        exponentials = shifted.exp_()
        total = exponentials.sum(dim=-1)
        dist.all_reduce(total, group=tensor.group)
        ctx.save_for_backward(exponentials.div_(total[..., None]), local, is_mine)
        return total.log() - of_target

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        """The derivative by a logit is its probability, less 1 for the target. Every rank has its words' own."""
        probabilities, local, is_mine = ctx.saved_tensors
        of_logits = probabilities * gradient[..., None]
        of_logits.scatter_add_(-1, local[..., None], (-gradient * is_mine)[..., None])
        return of_logits, None, None


class SumOfGradients:
    """Sums over the tensor ranks, once a step, the gradients of what each applied to its own shard of positions.

    They are few and small, hence in one message. Where they are sharded over the data ranks, each rank sums its shards
    with those of the ranks that have the same ones.
    """

    def __init__(self, modules: Iterable[nn.Module], tensor: Axis) -> None:
        # Modules, for sharding gives them other parameters; weakly, for of a pipeline's stages a rank keeps its own.
        self._modules, self._tensor = [weakref.ref(module) for module in modules], tensor

    def __call__(self, shares_of: SharesOf) -> None:
        here = (module for reference in self._modules if (module := reference()) is not None)
        found = shares_of(parameter for module in here for parameter in module.parameters())
        if not found:  # a pipeline's stage without any
            return
        all_reduce_together(found, self._tensor.group)
