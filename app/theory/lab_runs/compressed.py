"""Compressed gradients: what each bucket then sends, and what is kept for it (labs/parallel/compression.py)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil

from app.theory.transformer import Tensor
from labs.spec import Compression, RunSpec

_FP32_BYTES, _INDEX_BYTES = 4, 4


def companion_bytes(spec: RunSpec, held: Sequence[Tensor]) -> float:
    """What every rank keeps from step to step besides: errors to feed back, and PowerSGD's right factors."""
    compression = spec.compression
    if compression.kind == "none":
        return 0.0
    errors = sum(tensor.size for tensor in held) if compression.error_feedback else 0
    factors = sum(_rank(tensor, compression) * _columns(tensor) for tensor in held if _is_matrix(tensor))
    return float(_FP32_BYTES * (errors + (factors if compression.kind == "powersgd" else 0)))


def messages(compression: Compression, bucket: Sequence[Tensor], ranks: int) -> Iterator[tuple[str, int]]:
    """The collectives for one bucket: which operation, and its payload in bytes."""
    values = sum(tensor.size for tensor in bucket)
    kept = ceil(compression.density * values)
    if compression.kind in ("fp16", "bf16"):
        yield "all_reduce", 2 * values
    elif compression.kind == "top-k":
        yield "all_gather", ranks * kept * (_FP32_BYTES + _INDEX_BYTES)
    elif compression.kind == "random-k":
        yield "all_reduce", kept * _FP32_BYTES
    elif compression.kind == "one-bit":
        yield "all_gather", ranks * (ceil(values / 8) + _FP32_BYTES * len(bucket))
    else:
        yield from _power_sgd(compression, bucket)


def _power_sgd(compression: Compression, bucket: Sequence[Tensor]) -> Iterator[tuple[str, int]]:
    """All left factors as one, all right ones, and what is no matrix as it is."""
    matrices = [tensor for tensor in bucket if _is_matrix(tensor)]
    sent = (
        sum(_rank(tensor, compression) * tensor.shape[0] for tensor in matrices),
        sum(_rank(tensor, compression) * _columns(tensor) for tensor in matrices),
        sum(tensor.size for tensor in bucket if not _is_matrix(tensor)),
    )
    for values in sent:
        if values:
            yield "all_reduce", _FP32_BYTES * values


def _is_matrix(tensor: Tensor) -> bool:
    return len(tensor.shape) > 1


def _columns(tensor: Tensor) -> int:
    return tensor.size // tensor.shape[0]


def _rank(tensor: Tensor, compression: Compression) -> int:
    return min(compression.rank, tensor.shape[0], _columns(tensor))
