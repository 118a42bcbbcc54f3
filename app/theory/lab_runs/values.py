"""How many bytes a value has where layers send it: what a run computes in, and what it adds up in between."""

from __future__ import annotations

from app.theory.lab_runs.place import data_ranks
from labs.spec import RunSpec

FP32_BYTES = 4
_HALF_BYTES = 2


def multiplied_bytes(spec: RunSpec) -> int:
    """Of a value on its way into or out of a matrix product, and of its gradient."""
    return FP32_BYTES if spec.training.precision == "fp32" else _HALF_BYTES


def stream_bytes(spec: RunSpec) -> int:
    """Of a value that passes from block to block. Autocast leaves embeddings and their sums in fp32; FSDP2 casts the
    weights they are made of."""
    autocasts = spec.training.state_layout == "torch-amp" and not is_fully_sharded(spec)
    return FP32_BYTES if autocasts else multiplied_bytes(spec)


def is_fully_sharded(spec: RunSpec) -> bool:
    """Whether FSDP2 is at work: without another data rank, among others, there is nothing to shard over."""
    return spec.parallel.zero == 3 and (data_ranks(spec.parallel) > 1 or spec.parallel.world_size == 1)


def recomputed(spec: RunSpec, layers: set[int]) -> int:
    """How many of `layers`, counted from 0, run forward again in backward."""
    if spec.training.recompute == "none":
        return 0
    return sum(layer % spec.training.recompute_every == 0 for layer in layers)
