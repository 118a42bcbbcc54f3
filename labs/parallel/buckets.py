"""Gradients that are sent together: which of them, and how."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.tensor import DTensor

T = TypeVar("T", bound=Tensor)


def in_buckets(
    tensors: Iterable[T], bucket_bytes: int, size_bytes: Callable[[T], int] = lambda tensor: tensor.nbytes
) -> Iterator[list[T]]:
    """`tensors` in their order, a bucket closed as soon as it has reached `bucket_bytes`."""
    bucket: list[T] = []
    filled = 0
    for tensor in tensors:
        bucket.append(tensor)
        filled += size_bytes(tensor)
        if filled >= bucket_bytes:
            yield bucket
            bucket, filled = [], 0
    if bucket:
        yield bucket


def all_reduce_together(gradients: Sequence[Tensor], group: dist.ProcessGroup | None, divisor: int = 1) -> None:
    """Sum `gradients` over `group` in place, in one message, and divide them by `divisor`."""
    flat = torch.cat([gradient.flatten() for gradient in gradients])
    dist.all_reduce(flat, group=group)
    flat /= divisor
    sums = torch.split(flat, [gradient.numel() for gradient in gradients])
    for gradient, total in zip(gradients, sums, strict=True):
        gradient.copy_(total.view_as(gradient))


def local(tensor: Tensor) -> Tensor:
    """The part of `tensor` that is on this rank: all of it, unless the library cut it."""
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor
