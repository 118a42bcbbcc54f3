"""Which tensors a rank works with, and how many bytes of them it keeps from step to step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil

from app.theory.optimizers import optimizer_bytes_per_parameter
from app.theory.runs.buckets import buckets, padded
from app.theory.runs.compressed import companion_bytes
from app.theory.runs.place import Place, data_ranks, shard_ranks
from app.theory.state import LAYOUTS
from app.theory.transformer import Tensor, tensors
from labs.spec import RunSpec

_SHARDED_FROM = {"optimizer": 1, "gradients": 2, "parameters": 3}  # ZeRO stage


def held_tensors(spec: RunSpec, place: Place) -> list[Tensor]:
    """The tensors of this rank's part of the model, whole along the data axis."""
    return list(tensors(spec.model, spec.training.sequence))


def kept_bytes(spec: RunSpec, place: Place, held: Sequence[Tensor], component: str) -> float:
    """Bytes of `component` (parameters, gradients or optimizer) that stay in memory from step to step.

    State offloaded to the host counts here: without an accelerator that is the same memory. State in a file does not.
    """
    values = kept_values(spec, place, held, component)
    if component != "optimizer":
        return float(getattr(LAYOUTS[spec.training.state_layout], component)) * values
    each = optimizer_bytes_per_parameter(LAYOUTS[spec.training.state_layout], spec.training.optimizer)
    if spec.training.offload == "file":
        each = 0.0
    return each * values + companion_bytes(spec, held)


def kept_values(spec: RunSpec, place: Place, held: Sequence[Tensor], component: str) -> int:
    """Values of `component` that stay: all of them, or this rank's share."""
    zero, ranks = spec.parallel.zero, data_ranks(spec.parallel)
    own = place.shard * spec.parallel.context + place.context
    if zero == 3:
        shards = shard_ranks(spec.parallel)
        # Weights and gradients are padded to equal pieces; the optimizer keeps state only of what is there.
        own = own if component == "optimizer" else 0
        return sum(piece(tensor, shards, own) for tensor in held)
    if zero == 0:
        return sum(tensor.size for tensor in held)
    if spec.training.zero_implementation == "ZeroRedundancyOptimizer":
        dealt = dealt_out(held, ranks)[own]
        return sum(tensor.size for tensor in (dealt if component == "optimizer" else held))
    whole = sum(padded(bucket, ranks) for bucket in flat_buffers(spec, held))
    return whole // ranks if zero >= _SHARDED_FROM[component] else whole


def flat_buffers(spec: RunSpec, held: Sequence[Tensor]) -> list[list[Tensor]]:
    """The tensors of each flat buffer of ZeRO-1 and 2."""
    return list(buckets(held, LAYOUTS[spec.training.state_layout].gradients, spec.training.bucket_bytes))


def dealt_out(held: Sequence[Tensor], ranks: int) -> list[list[Tensor]]:
    """The tensors each rank updates under `ZeroRedundancyOptimizer`: the largest first, each to who has least."""
    found: list[list[Tensor]] = [[] for _ in range(ranks)]
    sizes = [0] * ranks
    for tensor in sorted(held, key=lambda tensor: tensor.size, reverse=True):
        least = sizes.index(min(sizes))
        found[least].append(tensor)
        sizes[least] += tensor.size
    return found


def piece(tensor: Tensor, ranks: int, own: int = 0) -> int:
    """Values of `tensor` that rank number `own` keeps under FSDP2: whole rows, as many as the first rank has while
    there are any left."""
    rows = tensor.shape[0]
    each = ceil(rows / ranks)
    return max(0, min(each, rows - own * each)) * (tensor.size // rows)


def padded_values(held: Iterable[Tensor], ranks: int) -> int:
    """Values that FSDP2 gathers and scatters: equal pieces of whole rows, the last ones padded."""
    return ranks * sum(piece(tensor, ranks) for tensor in held)
