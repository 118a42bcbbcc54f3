"""What data parallelism sends, sharded or not.

FSDP2 cuts every tensor along its first dimension into K equal pieces and pads the last ones, and keeps its root unit
(embeddings, final norm, head) gathered between forward and backward.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from app.theory.lab_runs.buckets import buckets, padded
from app.theory.lab_runs.compressed import messages
from app.theory.lab_runs.held import flat_buffers, last_stage, padded_values, stages_of
from app.theory.lab_runs.place import Place, data_ranks, shard_ranks
from app.theory.lab_runs.transfers import Transfer, transfer
from app.theory.state import LAYOUTS
from app.theory.transformer import Tensor
from labs.spec import RunSpec
from labs.spec.events import StepPhase

_FLAG_BYTES = 4  # whether all gradients are finite, an fp32 number


def data_transfers(spec: RunSpec, place: Place, held: Sequence[Tensor]) -> Iterator[Transfer]:
    """What gradients, and parameters where they are sharded, cost a rank that holds `held`.

    Without another data rank there is nothing to do; alone in the world DDP calls its collective all the same.
    """
    ranks = data_ranks(spec.parallel)
    if ranks == 1 and spec.parallel.world_size > 1:
        return
    if spec.parallel.zero == 3:
        yield from _fsdp(spec, place, held)
    elif spec.parallel.zero == 0:
        yield from _replicas(spec, held) if spec.parallel.pipeline > 1 else _ddp(spec, held)
    elif spec.training.zero_implementation == "ZeroRedundancyOptimizer":
        yield from _ddp(spec, held)
        yield from _broadcasts(spec, held)
    else:
        yield from _flat_buffers(spec, held)


def overflow_transfers(spec: RunSpec) -> Iterator[Transfer]:
    """Where the loss is scaled, all ranks agree once a step whether any of them saw an overflow. They are called by the
    axis that has them all, if there is one."""
    everybody = spec.parallel.world_size
    if not spec.training.loss_scaling or everybody == 1:
        return
    axes = {"data": data_ranks(spec.parallel), "tensor": spec.parallel.tensor, "pipeline": spec.parallel.pipeline}
    group = next((name for name, ranks in axes.items() if ranks == everybody), "world")
    yield transfer("All-reduce, overflow", "all_reduce", "optimizer", group, everybody, 1, float(_FLAG_BYTES))


def _ddp(spec: RunSpec, held: Sequence[Tensor]) -> Iterator[Transfer]:
    """Every bucket of gradients once per step, all-reduced or compressed; no_sync keeps earlier micro-steps quiet."""
    ranks, each = data_ranks(spec.parallel), LAYOUTS[spec.training.state_layout].gradients
    counts, sizes = Counter[str](), Counter[str]()
    for bucket in buckets(held, each, spec.training.bucket_bytes):
        whole = ("all_reduce", int(each * sum(tensor.size for tensor in bucket)))
        sent = [whole] if spec.compression.kind == "none" else messages(spec.compression, bucket, ranks)
        for operation, size in sent:
            counts[operation] += 1
            sizes[operation] += size
    for operation, count in counts.items():
        title = f"{operation.capitalize().replace('_', '-')}, gradients"
        yield transfer(title, operation, "backward", _label(ranks), ranks, count, float(sizes[operation]))


def _label(ranks: int) -> str:
    """DDP calls its collectives even where a rank is alone; there is no group of data ranks then."""
    return "data" if ranks > 1 else "world"


def _broadcasts(spec: RunSpec, held: Sequence[Tensor]) -> Iterator[Transfer]:
    """`ZeroRedundancyOptimizer`: every tensor from the rank that has updated it."""
    size = LAYOUTS[spec.training.state_layout].parameters * sum(tensor.size for tensor in held)
    ranks = data_ranks(spec.parallel)
    yield transfer("Broadcast, weights", "broadcast", "optimizer", _label(ranks), ranks, len(held), float(size))


def _flat_buffers(spec: RunSpec, held: Sequence[Tensor]) -> Iterator[Transfer]:
    """ZeRO-1 and 2: gradients reduce-scattered, once per step or with every micro-batch, and weights all-gathered."""
    ranks, layout = data_ranks(spec.parallel), LAYOUTS[spec.training.state_layout]
    if ranks == 1:  # alone there is nobody to send to
        return
    found = flat_buffers(spec, held)
    values = sum(padded(bucket, ranks) for bucket in found)
    times = spec.training.micro_batches if spec.parallel.zero == 2 else 1
    scattered, gathered = layout.gradients * values * times, layout.parameters * values
    title = "Reduce-scatter, gradients"
    yield transfer(title, "reduce_scatter", "backward", "data", ranks, times * len(found), scattered)
    yield transfer("All-gather, weights", "all_gather", "optimizer", "data", ranks, len(found), gathered)


def _replicas(spec: RunSpec, held: Sequence[Tensor]) -> Iterator[Transfer]:
    """One all-reduce of every gradient after the pipeline's last pass, in buckets closed at `bucket_bytes`, which are
    filled in the order of the modules."""
    ranks, each = data_ranks(spec.parallel), LAYOUTS[spec.training.state_layout].gradients
    found = list(buckets(held[::-1], each, spec.training.bucket_bytes))
    size = each * sum(tensor.size for tensor in held)
    yield transfer("All-reduce, gradients", "all_reduce", "backward", "data", ranks, len(found), float(size))


def _fsdp(spec: RunSpec, place: Place, held: Sequence[Tensor]) -> Iterator[Transfer]:
    """Per micro-step: every unit gathered in forward, the layers again in backward, every gradient scattered; with
    HSDP every shard of them all-reduced over the replicas besides. Recomputation finds its layer gathered.

    A pipeline keeps its stages gathered through all micro-steps, and scatters their gradients once, at the end. Only
    the ends have a root unit besides their layers.
    """
    ranks, in_pipeline = shard_ranks(spec.parallel), spec.parallel.pipeline > 1
    micro_steps = 1 if in_pipeline else spec.training.micro_batches
    roots = sum(stage in (0, last_stage(spec)) for stage in stages_of(spec, place)) if in_pipeline else 1
    replicas = data_ranks(spec.parallel) // ranks
    if ranks == 1:  # the only shard is the whole: FSDP2 calls no collective
        return
    layers = len({tensor.layer for tensor in held} - {None})
    whole = padded_values(held, ranks)
    again = padded_values((tensor for tensor in held if tensor.layer is not None), ranks)
    if not spec.training.reshard_after_forward:
        again = 0
    weight, gradient = fsdp_bytes(spec)
    group = "shard" if replicas > 1 else "data"
    rows: list[tuple[str, str, StepPhase, str, int, int, float]] = [
        ("All-gather, forward", "all_gather", "forward", group, ranks, layers + roots, weight * whole),
        ("All-gather, backward", "all_gather", "backward", group, ranks, layers, weight * again),
        ("Reduce-scatter, gradients", "reduce_scatter", "backward", group, ranks, layers + roots, gradient * whole),
    ]
    if replicas > 1:
        title = "All-reduce, shards of gradients"
        rows.append((title, "all_reduce", "backward", "replicate", replicas, layers + roots, gradient * whole / ranks))
    for title, operation, phase, group, size, count, payload_bytes in rows:
        if payload_bytes:
            yield transfer(title, operation, phase, group, size, micro_steps * count, micro_steps * payload_bytes)


def fsdp_bytes(spec: RunSpec) -> tuple[float, float]:
    """Bytes of a weight when it is gathered, and of a gradient when it is reduced.

    With torch-amp shards are kept in fp32, cast to 16 bits for the gathering, and reduced in fp32.
    """
    layout = LAYOUTS[spec.training.state_layout]
    return (2.0, 4.0) if layout.name == "torch-amp" else (layout.parameters, layout.gradients)
