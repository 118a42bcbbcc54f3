"""Gradient compression: send less than the gradients, under DDP.

DDP hands each full bucket to a *hook*, which must give back the mean over ranks. In place of the all-reduce a scheme
sends (n values in a bucket, K ranks):

  fp16, bf16  every value in 16 bits: an all-reduce of 2n bytes
  top-k       the density × n largest values, each with its index. Ranks choose different ones, so they cannot be added
              on the way: an all-gather of K × 8 bytes for each. Lin et al. 2018, "Deep Gradient Compression"
  random-k    as many at random. All ranks draw the same indices from the same seed, so they need not be sent: an
              all-reduce of 4 bytes for each. Stich et al. 2018, "Sparsified SGD with Memory"
  one-bit     the sign of every value, and for every tensor the mean of the magnitudes: an all-gather of K × (n/8 + 4
              for each tensor) bytes. Seide et al. 2014, "1-Bit SGD"; the scale is Karimireddy et al.'s 2019
  powersgd    for every matrix two factors of `rank` columns: two all-reduces of rank × rows and rank × columns values,
              and vectors as they are. Vogels et al. 2019, "PowerSGD", algorithm 1

What a scheme leaves out is not lost but late, with *error feedback*: every rank adds what it did not send to its next
gradient (Seide et al. 2014; Karimireddy et al. 2019 for why that converges). It costs 4 bytes for every parameter.

A scheme sends and waits in the hook. Hooks run in the order of the buckets, which is the same on every rank, so that
PowerSGD's second all-reduce cannot be overtaken on another rank by the next bucket's first; chained behind futures, as
PyTorch has it, four ranks on gloo wait for each other forever. The price: nothing is hidden behind backward.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Any, Protocol

import torch
import torch.distributed as dist
from torch import Tensor
from torch.futures import Future
from torch.nn.parallel import DistributedDataParallel

from labs.parallel.mesh import Axis
from labs.spec import Compression

_SEED = 271828
_BIT_VALUES = (1, 2, 4, 8, 16, 32, 64, 128)


@dataclass(frozen=True)
class Reduced:
    """The mean over ranks as a scheme gives it, and what this rank's own part in it came to: flat, as the bucket."""

    mean: Tensor
    sent: Tensor


class Scheme(Protocol):
    def reduce(self, bucket: Tensor, gradients: Sequence[Tensor], keys: Sequence[Tensor]) -> Reduced:
        """Reduce `bucket`, of which `gradients` are views, one for each of the parameters `keys`."""

    def kept(self) -> Iterator[Tensor]:
        """What it keeps from step to step."""


class Compressor:
    """A scheme with its error feedback: what DDP calls for each bucket."""

    def __init__(self, scheme: Scheme | None, error_feedback: bool) -> None:
        self._scheme, self._error_feedback = scheme, error_feedback
        self._left_out: dict[Tensor, Tensor] = {}  # by parameter: DDP regroups its buckets after the first step

    def __call__(self, bucket: Any) -> Future[Tensor]:
        """`bucket` is DDP's GradBucket, which has no type of its own in Python."""
        assert self._scheme is not None
        values, gradients, keys = bucket.buffer(), bucket.gradients(), bucket.parameters()
        if self._error_feedback:
            for key, gradient in zip(keys, gradients, strict=True):
                if key in self._left_out:
                    gradient.add_(self._left_out[key])
        reduced = self._scheme.reduce(values, gradients, keys)
        if self._error_feedback:
            self._remember(values - reduced.sent, gradients, keys)
        values.copy_(reduced.mean)
        # On a GPU the future carries the stream's progress with it, so that DDP waits for the copy above.
        future: Future[Tensor] = Future(devices=[values.device] if values.is_cuda else [])
        future.set_result(values)
        return future

    def _remember(self, left_out: Tensor, gradients: Sequence[Tensor], keys: Sequence[Tensor]) -> None:
        start = 0
        for key, gradient in zip(keys, gradients, strict=True):
            piece = left_out[start : start + gradient.numel()].view(gradient.shape)
            self._left_out.setdefault(key, torch.empty_like(gradient)).copy_(piece)
            start += gradient.numel()

    def kept(self) -> Iterator[Tensor]:
        yield from self._left_out.values()
        if self._scheme is not None:
            yield from self._scheme.kept()


def compress_gradients(replica: DistributedDataParallel, data: Axis, compression: Compression) -> Compressor:
    """Have `replica` reduce its buckets as `compression` says; as it always does, if that is not at all."""
    group = data.group if data.group is not None else replica.process_group
    compressor = Compressor(_scheme(compression, group), compression.error_feedback)
    if compression.kind != "none":
        replica.register_comm_hook(compressor, lambda state, bucket: state(bucket))
    return compressor


def _scheme(compression: Compression, group: dist.ProcessGroup) -> Scheme | None:
    if compression.kind in ("fp16", "bf16"):
        return HalfPrecision(group, torch.float16 if compression.kind == "fp16" else torch.bfloat16)
    if compression.kind == "top-k":
        return TopK(group, compression.density)
    if compression.kind == "random-k":
        return RandomK(group, compression.density, unbiased=not compression.error_feedback)
    if compression.kind == "one-bit":
        return OneBit(group)
    return PowerSGD(group, compression.rank) if compression.kind == "powersgd" else None


class _Stateless:
    def kept(self) -> Iterator[Tensor]:
        yield from ()


@dataclass
class HalfPrecision(_Stateless):
    """Divided by the number of ranks first: their sum must not overflow fp16, which ends at 65,504."""

    group: dist.ProcessGroup
    dtype: torch.dtype

    def reduce(self, bucket: Tensor, gradients: Sequence[Tensor], keys: Sequence[Tensor]) -> Reduced:
        ranks = self.group.size()
        small = (bucket / ranks).to(self.dtype)
        sent = small.to(bucket.dtype) * ranks
        dist.all_reduce(small, group=self.group)
        return Reduced(small.to(bucket.dtype), sent)


@dataclass
class TopK(_Stateless):
    """Values and indices travel in one message, both in 32 bits."""

    group: dist.ProcessGroup
    density: float

    def reduce(self, bucket: Tensor, gradients: Sequence[Tensor], keys: Sequence[Tensor]) -> Reduced:
        count, ranks = ceil(self.density * bucket.numel()), self.group.size()
        indices = bucket.abs().topk(count).indices
        values = bucket[indices].float()
        message = torch.cat([values.view(torch.int32), indices.int()])
        messages = message.new_empty(ranks * len(message))
        dist.all_gather_single(messages, message, group=self.group)
        total = torch.zeros_like(bucket)
        for theirs in messages.chunk(ranks):
            their_values, their_indices = theirs.chunk(2)
            total.index_add_(0, their_indices, their_values.view(torch.float32).to(bucket.dtype))
        sent = torch.zeros_like(bucket).index_copy_(0, indices, values.to(bucket.dtype))
        return Reduced(total / ranks, sent)


@dataclass
class RandomK(_Stateless):
    """Without error feedback what is sent is divided by the density: then its expectation is the gradient."""

    group: dist.ProcessGroup
    density: float
    unbiased: bool
    generator: torch.Generator = field(default_factory=lambda: torch.Generator().manual_seed(_SEED))

    def reduce(self, bucket: Tensor, gradients: Sequence[Tensor], keys: Sequence[Tensor]) -> Reduced:
        length, ranks = bucket.numel(), self.group.size()
        count = ceil(self.density * length)
        indices = torch.randperm(length, generator=self.generator)[:count].to(bucket.device)
        values = (bucket[indices] / ranks).float()
        sent = torch.zeros_like(bucket).index_copy_(0, indices, values.to(bucket.dtype) * ranks)
        dist.all_reduce(values, group=self.group)
        scale = length / count if self.unbiased else 1.0
        mean = torch.zeros_like(bucket).index_copy_(0, indices, values.to(bucket.dtype) * scale)
        return Reduced(mean, sent)


@dataclass
class OneBit(_Stateless):
    """Eight signs to a byte, the bucket's tensors end to end, and after them an fp32 scale for each tensor."""

    group: dist.ProcessGroup

    def reduce(self, bucket: Tensor, gradients: Sequence[Tensor], keys: Sequence[Tensor]) -> Reduced:
        ranks, sizes = self.group.size(), [gradient.numel() for gradient in gradients]
        scales = torch.stack([gradient.abs().mean() for gradient in gradients]).float()
        message = torch.cat([_packed(bucket >= 0), scales.view(torch.uint8)])
        messages = message.new_empty(ranks * len(message))
        dist.all_gather_single(messages, message, group=self.group)
        theirs = [_signs_times_scales(each, sizes).to(bucket.dtype) for each in messages.chunk(ranks)]
        return Reduced(torch.stack(theirs).mean(0), theirs[dist.get_rank(self.group)])


def _packed(bits: Tensor) -> Tensor:
    """Booleans, eight to a byte, the last ones filled up: (n,) -> (n/8, rounded up)."""
    padded = torch.nn.functional.pad(bits.to(torch.uint8), (0, -len(bits) % 8))
    weights = torch.tensor(_BIT_VALUES, dtype=torch.uint8, device=bits.device)
    return (padded.view(-1, 8) * weights).sum(1, dtype=torch.uint8)


def _signs_times_scales(message: Tensor, sizes: Sequence[int]) -> Tensor:
    """A message of `OneBit` as the gradients it stands for."""
    scale_bytes = 4 * len(sizes)
    bits, scales = message[:-scale_bytes], message[-scale_bytes:].clone().view(torch.float32)
    weights = torch.tensor(_BIT_VALUES, dtype=torch.uint8, device=message.device)
    signs = (bits.unsqueeze(1) & weights).ne(0).flatten()[: sum(sizes)].float() * 2 - 1
    return signs * scales.repeat_interleave(torch.tensor(sizes, device=message.device))


@dataclass
class PowerSGD:
    """One step of the power method a training step, from where the last one ended: each matrix M ≈ P·Qᵀ.

    P ← mean(M·Q), made orthogonal; Q ← mean(Mᵀ·P).
    """

    group: dist.ProcessGroup
    rank: int
    right: dict[Tensor, Tensor] = field(default_factory=dict)  # Q of each parameter
    generator: torch.Generator = field(default_factory=lambda: torch.Generator().manual_seed(_SEED))

    def reduce(self, bucket: Tensor, gradients: Sequence[Tensor], keys: Sequence[Tensor]) -> Reduced:
        matrices = [(key, gradient) for key, gradient in zip(keys, gradients, strict=True) if gradient.dim() > 1]
        left = self._mean([matrix @ self._right_of(key, matrix) for key, matrix in matrices])
        left = [torch.linalg.qr(factor).Q for factor in left]
        own_right = [matrix.T @ factor for (_, matrix), factor in zip(matrices, left, strict=True)]
        right = self._mean(own_right)
        vectors = iter(self._mean([gradient for gradient in gradients if gradient.dim() == 1]))
        self.right.update((key, factor) for (key, _), factor in zip(matrices, right, strict=True))

        products = iter([(p @ q.T, p @ own.T) for p, q, own in zip(left, right, own_right, strict=True)])
        means, sent = [], []
        for gradient in gradients:
            mean, own = next(products) if gradient.dim() > 1 else (next(vectors), gradient)
            means.append(mean.flatten())
            sent.append(own.flatten())
        return Reduced(torch.cat(means), torch.cat(sent))

    def kept(self) -> Iterator[Tensor]:
        yield from self.right.values()

    def _right_of(self, key: Tensor, matrix: Tensor) -> Tensor:
        """Random at first, and the same on every rank."""
        if key not in self.right:
            shape = (matrix.shape[1], min(self.rank, *matrix.shape))
            self.right[key] = torch.randn(shape, generator=self.generator, dtype=matrix.dtype).to(matrix.device)
        return self.right[key]

    def _mean(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """The mean over ranks of each of `tensors`, sent as one."""
        if not tensors:
            return []
        flat = torch.cat([tensor.flatten() for tensor in tensors])
        dist.all_reduce(flat, group=self.group)
        pieces = flat.div_(self.group.size()).split([tensor.numel() for tensor in tensors])  # type: ignore[no-untyped-call]
        return [piece.view(tensor.shape) for piece, tensor in zip(pieces, tensors, strict=True)]
