"""Context parallelism: the sequence is cut, and each of c ranks has a part of every row's tokens.

Everything in a transformer looks at one position at a time but attention, where each position's query looks at the keys
and values of all positions before it. So all of the model runs as it is on T/c tokens, and only attention is rewritten.
Queries stay where they are; keys and values travel. In c rounds each rank attends with its queries to the keys and
values it has at hand, while these are already on their way to the next rank and the previous rank's come in: a ring.
After c rounds every query has met every key, and no rank ever held all of them.

Attention to some of the keys is merged exactly. Let `lse` be the logarithm of the sum of a query's exponentiated
scores, its softmax's denominator. Parts A and B with results y and lse merge to

    lse = log(exp lse_A + exp lse_B)        y = exp(lse_A − lse) · y_A + exp(lse_B − lse) · y_B

Causality would spoil the balance: a rank with the row's last tokens has c times the work of the one with the first. So
a row is cut into 2c chunks, and rank r takes the r-th from the front and the r-th from the back (*zigzag*). Then each
round but the first, of one's own keys, is half of the score matrix for every rank:

    keys from a rank before    all my queries see its front chunk, and none its back chunk
    keys from a rank after     my back queries see both its chunks, and my front queries none

Backward goes round once more. The scores are computed again from the saved lse, and each rank adds its share to the
gradients of the keys and values it has at hand; these travel with them and come home in one last round. Messages for
each layer and micro-batch: c−1 forward, c−1 and c backward, each of the keys and values of T/c tokens.

What autograd keeps is what it keeps of plain attention to T/c tokens. The scores of a round are in memory while they
are worked on, at most (T/c)² for each head: here they are written out to be read, where production uses fused kernels.

Liu et al. 2023, "Ring attention with blockwise transformers", section 3; Dao et al. 2022 (FlashAttention), section 3.1
and algorithm 4, for merging and for the backward pass; Brandon et al. 2023, "Striped attention", for the imbalance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from labs.model import GPT
from labs.parallel.mesh import Axis


def split_context(model: GPT, context: Axis, sequence: int) -> Zigzag:
    """Have `model`, or a pipeline's stage of it, work on this rank's tokens only: those that the result selects.

    `sequence` is the whole row's length, divisible by 2 × `context.size`.
    """
    zigzag = Zigzag(context.index, context.size, sequence)
    if context.size == 1:
        return zigzag
    for block in model.blocks:
        attention = block.get_submodule("attention")  # the plain one, or a tensor rank's
        attention.core = RingAttention(context)
    if (positions := getattr(model, "positions", None)) is not None:
        positions.register_forward_pre_hook(lambda _module, places: (zigzag.positions(places[0]),))
    if model.rotary is not None:
        model.rotary.places = zigzag.positions
    return zigzag


@dataclass(frozen=True)
class Zigzag:
    """Which of a row's tokens are this rank's: of 2c chunks, the one from the front and the one from the back."""

    index: int
    ranks: int
    sequence: int

    def __call__(self, rows: Tensor) -> Tensor:
        """This rank's tokens of (B, T): (B, T/c)."""
        if self.ranks == 1:
            return rows
        chunks = rows.chunk(2 * self.ranks, dim=1)
        return torch.cat([chunks[self.index], chunks[-1 - self.index]], dim=1)

    def positions(self, places: Tensor) -> Tensor:
        """Where this rank's tokens, numbered from 0, stand in the whole row."""
        chunk = self.sequence // (2 * self.ranks)
        front, back = self.index * chunk, (2 * self.ranks - 2 - self.index) * chunk
        return places + torch.where(places < chunk, front, back)


class RingAttention(nn.Module):
    """Causal attention among the tokens of all ranks of `context`, in place of the model's `CoreAttention`."""

    def __init__(self, context: Axis) -> None:
        super().__init__()
        self.context = context

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """(B, heads, T/c, D) and twice (B, kv_heads, T/c, D), to (B, heads, T/c, D)."""
        y: Tensor = Ring.apply(q, k, v, self.context)  # type: ignore[no-untyped-call]
        return y


class Ring(Function):
    """Attention in c rounds, and its backward pass in as many."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, context: Axis) -> Tensor:
        ctx.context = context
        groups = _by_key_head(q, k)  # (B, kv_heads, heads/kv_heads, T/c, D)
        y = torch.zeros_like(groups, dtype=_precise(q))
        lse = torch.full(groups.shape[:-1], -torch.inf, dtype=y.dtype, device=q.device)  # nothing attended to yet
        keys_values = torch.stack([k, v])
        for turn in range(context.size):
            underway = _pass_on(keys_values, context) if turn < context.size - 1 else None
            part = Part.of(turn, context, q.shape[2])
            keys, values = keys_values[..., part.keys, :].unbind()
            more, more_lse = _attend(groups[..., part.queries, :], keys, values, part.is_own)
            _merge(y[..., part.queries, :], lse[..., part.queries], more, more_lse)
            if underway is not None:
                keys_values = underway.wait()
        # In memory token after token, as fused attention leaves it: so the output matrix needs no copy to keep.
        y = y.view_as(q).to(q.dtype).transpose(1, 2).contiguous().transpose(1, 2)
        ctx.save_for_backward(q, k, v, y, lse)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        q, k, v, y, lse = ctx.saved_tensors
        context: Axis = ctx.context
        groups, of_y = _by_key_head(q, k), _by_key_head(gradient, k)
        # What softmax's derivative takes off every score's gradient: the row's mean of them, which is Σ y · dy.
        mean = (of_y * _by_key_head(y, k)).sum(dim=-1, dtype=lse.dtype)
        of_q = torch.zeros_like(groups)
        keys_values = torch.stack([k, v])
        of_keys_values = torch.zeros_like(keys_values)
        for turn in range(context.size):
            underway = _pass_on(keys_values, context) if turn < context.size - 1 else None
            part = Part.of(turn, context, q.shape[2])
            rows, columns = (..., part.queries, slice(None)), (..., part.keys, slice(None))
            keys, values = keys_values[..., part.keys, :].unbind()
            of_scores, weights = _scores_backward(
                groups[rows], keys, values, lse[..., part.queries], mean[..., part.queries], of_y[rows], part.is_own
            )
            of_q[rows] += of_scores @ keys.unsqueeze(2)
            of_keys_values[0][columns] += (of_scores.transpose(-2, -1) @ groups[rows]).sum(dim=2)
            of_keys_values[1][columns] += (weights.transpose(-2, -1) @ of_y[rows]).sum(dim=2)
            of_keys_values = _pass_on(of_keys_values, context, tag=1).wait()  # in the last round, home
            if underway is not None:
                keys_values = underway.wait()
        return of_q.view_as(q), of_keys_values[0], of_keys_values[1], None


@dataclass(frozen=True)
class Part:
    """Which of this rank's queries meet which of the keys at hand in one round of the ring."""

    queries: slice
    keys: slice
    is_own: bool  # one's own keys: a query sees those up to itself. All others it sees entirely.

    @classmethod
    def of(cls, turn: int, context: Axis, length: int) -> Part:
        """Round number `turn`, when the keys of the rank `turn` places before this one have come, `length` of them."""
        everything, half = slice(0, length), length // 2
        if turn == 0:
            return cls(everything, everything, is_own=True)
        if turn <= context.index:  # they come from a rank before this one
            return cls(everything, slice(0, half), is_own=False)
        return cls(slice(half, length), everything, is_own=False)


# --- attention to the keys at hand: q (B, kv_heads, group, Q, D), k and v (B, kv_heads, K, D)


def _by_key_head(q: Tensor, k: Tensor) -> Tensor:
    """(B, heads, T, D) to (B, kv_heads, group, T, D): the queries that share a key head lie together."""
    rows, heads, places, width = q.shape
    return q.reshape(rows, k.shape[1], heads // k.shape[1], places, width)


def _scores(q: Tensor, k: Tensor, is_own: bool) -> Tensor:
    """Every query's score for every key it sees, (B, kv_heads, group, Q, K); minus infinity where it does not."""
    scores: Tensor = (q @ k.unsqueeze(2).transpose(-2, -1)).to(_precise(q)) * float(q.shape[-1] ** -0.5)
    if is_own:
        later = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
        scores = scores.masked_fill(later, -torch.inf)
    return scores


def _attend(q: Tensor, k: Tensor, v: Tensor, is_own: bool) -> tuple[Tensor, Tensor]:
    """Attention to these keys alone, and each query's log-sum-exp: (B, kv_heads, group, Q, D) and (…, Q)."""
    scores = _scores(q, k, is_own)
    lse = scores.logsumexp(dim=-1)
    return (scores - lse[..., None]).exp().to(v.dtype) @ v.unsqueeze(2), lse


def _merge(y: Tensor, lse: Tensor, more: Tensor, more_lse: Tensor) -> None:
    """Add attention to more keys to what `y` and `lse` have so far, in place."""
    both = torch.logaddexp(lse, more_lse)
    y.mul_((lse - both).exp()[..., None]).add_(more * (more_lse - both).exp()[..., None])
    lse.copy_(both)


def _scores_backward(
    q: Tensor, k: Tensor, v: Tensor, lse: Tensor, mean: Tensor, of_y: Tensor, is_own: bool
) -> tuple[Tensor, Tensor]:
    """The gradient of q·k, and the attention weights, computed again: both (B, kv_heads, group, Q, K)."""
    weights = (_scores(q, k, is_own) - lse[..., None]).exp()
    of_weights = of_y @ v.unsqueeze(2).transpose(-2, -1)
    of_scores = weights * (of_weights - mean[..., None]) * float(q.shape[-1] ** -0.5)
    return of_scores.to(q.dtype), weights.to(q.dtype)


def _precise(values: Tensor) -> torch.dtype:
    """What exponentials are added up in: fp32 at least, as fused attention does for 16-bit values."""
    return torch.promote_types(values.dtype, torch.float32)


# --- the ring


@dataclass(frozen=True)
class Underway:
    """A tensor that comes in from the previous rank while this rank's own goes out to the next."""

    incoming: Tensor
    outgoing: Tensor  # must stay as it is until it is sent
    works: list[dist.Work]

    def wait(self) -> Tensor:
        for work in self.works:
            work.wait()
        return self.incoming


def _pass_on(tensor: Tensor, context: Axis, tag: int = 0) -> Underway:
    """Send `tensor` to the next rank and receive the previous one's: both at once, or the ring would wait for itself.

    `tag` tells apart what goes the same way at the same time.
    """
    incoming = torch.empty_like(tensor)
    works = dist.batch_isend_irecv(
        [
            dist.P2POp(dist.isend, tensor, context.neighbour(1), context.group, tag),
            dist.P2POp(dist.irecv, incoming, context.neighbour(-1), context.group, tag),
        ]
    )
    return Underway(incoming, tensor, works)
