"""Which gradients are sent together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from torch import Tensor

T = TypeVar("T", bound=Tensor)


def in_buckets(tensors: Iterable[T], bucket_bytes: int) -> Iterator[list[T]]:
    """`tensors` in their order, a bucket closed as soon as it has reached `bucket_bytes`."""
    bucket: list[T] = []
    filled = 0
    for tensor in tensors:
        bucket.append(tensor)
        filled += tensor.nbytes
        if filled >= bucket_bytes:
            yield bucket
            bucket, filled = [], 0
    if bucket:
        yield bucket
