"""How gradients are put into buckets: as they arrive in backward, until a bucket has reached its size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from app.theory.transformer import Tensor


def buckets(held: Sequence[Tensor], bytes_each: float, bucket_bytes: int) -> Iterator[list[Tensor]]:
    """The buckets of `held`, which is in the order of a forward pass; a gradient value takes `bytes_each`.

    Backward makes gradients last layer first, and that of a token table used at both ends last of all. DDP learns this
    order in its first step, which has a single bucket, and regroups; our flat buffers assume it. A norm's two vectors
    arrive the other way round, but are of one size. `bucket_bytes` is the least a bucket has, but for the last.
    """
    found: list[Tensor] = []
    size_bytes = 0.0
    for tensor in reversed(held):
        found.append(tensor)
        size_bytes += bytes_each * tensor.size
        if size_bytes >= bucket_bytes:
            yield found
            found, size_bytes = [], 0.0
    if found:
        yield found


def padded(bucket: Sequence[Tensor], ranks: int) -> int:
    """Values of a flat buffer of `bucket`, made a multiple of `ranks`."""
    return -(-sum(tensor.size for tensor in bucket) // ranks) * ranks
