"""What data parallelism sends, sharded or not.

FSDP2 cuts every tensor along its first dimension into K equal pieces and pads the last ones, and keeps its root unit
(embeddings, final norm, head) gathered between forward and backward.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from app.theory.runs.held import last_stage, padded_values, stages_of
from app.theory.runs.place import Place, data_ranks
from app.theory.runs.transfers import Transfer, transfer
from app.theory.transformer import Tensor
from labs.spec import RunSpec

FP32_BYTES = 4


def data_transfers(spec: RunSpec, place: Place, held: Sequence[Tensor]) -> Iterator[Transfer]:
    """What gradients, and parameters where they are sharded, cost a rank that holds `held`.

    Without another data rank there is nothing to do; alone in the world DDP calls its collective all the same.
    """
    if data_ranks(spec.parallel) == 1 and spec.parallel.world_size > 1:
        return
    if spec.parallel.zero == 3:
        yield from _fsdp(spec, place, held)
    elif spec.parallel.pipeline > 1:
        yield from _replicas(spec, held)
    else:
        yield from _ddp(spec, held)


def _ddp(spec: RunSpec, held: Sequence[Tensor]) -> Iterator[Transfer]:
    """One all-reduce of every gradient per step, in buckets; no_sync keeps earlier micro-steps quiet."""
    size = float(FP32_BYTES * sum(tensor.size for tensor in held))
    ranks = data_ranks(spec.parallel)
    if ranks == 1 and spec.parallel.world_size > 1:  # no other data rank: no DDP
        return
    yield transfer("All-reduce, gradients", "all_reduce", "backward", "data", ranks, None, size)


def _replicas(spec: RunSpec, held: Sequence[Tensor]) -> Iterator[Transfer]:
    """One all-reduce of every gradient after the pipeline's last pass, in buckets closed at `bucket_bytes`."""
    buckets, filled = 0, 0
    for tensor in held:
        filled += FP32_BYTES * tensor.size
        if filled >= spec.training.bucket_bytes:
            buckets, filled = buckets + 1, 0
    size = float(FP32_BYTES * sum(tensor.size for tensor in held))
    ranks = data_ranks(spec.parallel)
    yield transfer("All-reduce, gradients", "all_reduce", "backward", "data", ranks, buckets + bool(filled), size)


def _fsdp(spec: RunSpec, place: Place, held: Sequence[Tensor]) -> Iterator[Transfer]:
    """Per micro-step: every unit gathered in forward, the layers again in backward, every gradient scattered.

    A pipeline keeps its stages gathered through all micro-steps, and scatters their gradients once, at the end. Only
    the ends have a root unit besides their layers.
    """
    ranks, in_pipeline = data_ranks(spec.parallel), spec.parallel.pipeline > 1
    micro_steps = 1 if in_pipeline else spec.training.micro_batches
    roots = sum(stage in (0, last_stage(spec)) for stage in stages_of(spec, place)) if in_pipeline else 1
    if ranks == 1:  # the only shard is the whole: FSDP2 calls no collective
        return
    layers = len({tensor.layer for tensor in held} - {None})
    whole = float(FP32_BYTES * padded_values(held, ranks))
    again = float(FP32_BYTES * padded_values((tensor for tensor in held if tensor.layer is not None), ranks))
    if not spec.training.reshard_after_forward:
        again = 0.0
    rows = [
        ("All-gather, forward", "all_gather", "forward", layers + roots, whole),
        ("All-gather, backward", "all_gather", "backward", layers, again),
        ("Reduce-scatter, gradients", "reduce_scatter", "backward", layers + roots, whole),
    ]
    for title, operation, phase, count, size in rows:
        if size:
            yield transfer(title, operation, phase, "data", ranks, micro_steps * count, micro_steps * size)
