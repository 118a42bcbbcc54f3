"""What data parallelism sends, sharded or not.

FSDP2 cuts every tensor along its first dimension into K equal pieces and pads the last ones, and keeps its root unit
(embeddings, final norm, head) gathered between forward and backward.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from app.theory.runs.held import padded_values
from app.theory.runs.place import data_ranks
from app.theory.runs.transfers import Transfer, transfer
from app.theory.transformer import Tensor
from labs.spec import RunSpec

FP32_BYTES = 4


def data_transfers(spec: RunSpec, held: Sequence[Tensor]) -> Iterator[Transfer]:
    """What gradients, and parameters where they are sharded, cost a rank that holds `held`."""
    yield from _fsdp(spec, held) if spec.parallel.zero == 3 else _ddp(spec, held)


def _ddp(spec: RunSpec, held: Sequence[Tensor]) -> Iterator[Transfer]:
    """One all-reduce of every gradient per step, in buckets; no_sync keeps earlier micro-steps quiet."""
    size = float(FP32_BYTES * sum(tensor.size for tensor in held))
    ranks = data_ranks(spec.parallel)
    if ranks == 1 and spec.parallel.world_size > 1:  # no other data rank: no DDP
        return
    yield transfer("All-reduce, gradients", "all_reduce", "backward", "data", ranks, None, size)


def _fsdp(spec: RunSpec, held: Sequence[Tensor]) -> Iterator[Transfer]:
    """Per micro-step: every unit gathered in forward, the layers again in backward, every gradient scattered."""
    ranks, micro_steps = data_ranks(spec.parallel), spec.training.micro_batches
    if ranks == 1:  # the only shard is the whole: FSDP2 calls no collective
        return
    layers = len({tensor.layer for tensor in held} - {None})
    whole = float(FP32_BYTES * padded_values(held, ranks))
    again = float(FP32_BYTES * padded_values((tensor for tensor in held if tensor.layer is not None), ranks))
    if not spec.training.reshard_after_forward:
        again = 0.0
    rows = [
        ("All-gather, forward", "all_gather", "forward", layers + 1, whole),
        ("All-gather, backward", "all_gather", "backward", layers, again),
        ("Reduce-scatter, gradients", "reduce_scatter", "backward", layers + 1, whole),
    ]
    for title, operation, phase, count, size in rows:
        if size:
            yield transfer(title, operation, phase, "data", ranks, micro_steps * count, micro_steps * size)
