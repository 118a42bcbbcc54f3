"""Which tensors a rank works with, and how many bytes of them it keeps from step to step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from math import ceil

from app.theory.lab_runs.buckets import buckets, padded
from app.theory.lab_runs.compressed import companion_bytes
from app.theory.lab_runs.cut import cut_over_tensor
from app.theory.lab_runs.place import Place, data_rank, data_ranks, shard_ranks
from app.theory.optimizers import optimizer_bytes_per_parameter
from app.theory.pipeline import chunk_of
from app.theory.state import LAYOUTS
from app.theory.transformer import Tensor, tensors
from labs.spec import RunSpec

_SHARDED_FROM = {"optimizer": 1, "gradients": 2, "parameters": 3}  # ZeRO stage


def held_tensors(spec: RunSpec, place: Place) -> list[Tensor]:
    """The tensors of this rank's part of the model, whole along the data axis, in the order of its modules: of its
    stages' layers, and of each its part.

    A tied table is on the first and on the last stage; where one rank has both, it is there once.
    """
    every = [
        cut_over_tensor(tensor, spec.parallel.tensor)
        for tensor in tensors(spec.model, spec.training.sequence)
        if is_held(tensor, spec, place)
    ]
    if spec.parallel.pipeline == 1:
        return every
    found = [tensor for chunk in stages_of(spec, place) for tensor in every if _is_on(tensor, spec, chunk)]
    return list(dict.fromkeys(found))


def stages_of(spec: RunSpec, place: Place) -> tuple[int, ...]:
    """The stages of a rank, in the order of the model."""
    parallel = spec.parallel
    return chunk_of(parallel.schedule, place.pipeline, parallel.pipeline, parallel.virtual_stages)


def last_stage(spec: RunSpec) -> int:
    return spec.parallel.pipeline * spec.parallel.virtual_stages - 1


def _is_on(tensor: Tensor, spec: RunSpec, stage: int) -> bool:
    first, last = stage == 0, stage == last_stage(spec)
    if tensor.layer is not None:
        return tensor.layer * (last_stage(spec) + 1) // spec.model.layers == stage
    if tensor.name == "token embedding":
        return first or (last and spec.model.tied_embeddings)
    return first if tensor.name == "position embedding" else last


def is_held(tensor: Tensor, spec: RunSpec, place: Place) -> bool:
    """Whether a rank holds `tensor`: what is no routed expert, and its share of those."""
    if tensor.expert is None:
        return True
    each = spec.model.experts // spec.parallel.expert
    return tensor.expert // each == data_rank(spec.parallel, place) % spec.parallel.expert


def is_averaged_apart(tensor: Tensor, spec: RunSpec) -> bool:
    """Whether its gradient is no matter of all data ranks, because not all of them hold it."""
    return spec.parallel.expert > 1 and tensor.expert is not None


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
    own = _own_number(spec, place)
    if zero == 3:
        # Weights and gradients are padded to equal pieces; the optimizer keeps state only of what is there.
        return sum(piece(tensor, *_share(tensor, spec, own if component == "optimizer" else 0)) for tensor in held)
    if zero == 0 or ranks == 1:
        return sum(tensor.size for tensor in held)
    if spec.training.zero_implementation == "ZeroRedundancyOptimizer":
        dealt = dealt_out(held, ranks)[own]
        return sum(tensor.size for tensor in (dealt if component == "optimizer" else held))
    whole = sum(padded(bucket, ranks) for bucket in flat_buffers(spec, held))
    return whole // ranks if zero >= _SHARDED_FROM[component] else whole


def own_gradient_values(spec: RunSpec, place: Place, held: Sequence[Tensor], wanted: Sequence[Tensor]) -> int:
    """Values of the averaged gradients of `wanted`, which are among `held`, that a rank answers for."""
    own = _own_number(spec, place)
    if spec.parallel.zero == 3:
        return sum(piece(tensor, *_share(tensor, spec, own)) for tensor in wanted)
    ranks = data_ranks(spec.parallel)
    if spec.parallel.zero == 0 or ranks == 1:
        return sum(tensor.size for tensor in wanted)
    found = 0
    for bucket in flat_buffers(spec, held):
        each = padded(bucket, ranks) // ranks
        starts = accumulate((tensor.size for tensor in bucket), initial=0)
        for tensor, start in zip(bucket, starts, strict=False):
            if tensor in wanted:
                found += max(0, min(start + tensor.size, (own + 1) * each) - max(start, own * each))
    return found


def _own_number(spec: RunSpec, place: Place) -> int:
    """Which of the ranks that share a copy of what is sharded this one is."""
    return place.shard * spec.parallel.context + place.context


def _share(tensor: Tensor, spec: RunSpec, own: int) -> tuple[int, int]:
    """How many ranks share a tensor under ZeRO-3, and which of them number `own` is: all that shard, or those of them
    that hold the same experts."""
    if not is_averaged_apart(tensor, spec):
        return shard_ranks(spec.parallel), own
    return shard_ranks(spec.parallel) // spec.parallel.expert, own // spec.parallel.expert


def flat_buffers(spec: RunSpec, held: Sequence[Tensor]) -> list[list[Tensor]]:
    """The tensors of each flat buffer of ZeRO-1 and 2. In a pipeline the tied table has one of its own, which the ranks
    at both ends then cut alike."""
    apart = [tensor for tensor in held if tensor.name == "token embedding" and is_at_both_ends(spec)]
    others = [tensor for tensor in held if tensor not in apart]
    each = LAYOUTS[spec.training.state_layout].gradients
    return [*buckets(others, each, spec.training.bucket_bytes), *([tensor] for tensor in apart)]


def is_at_both_ends(spec: RunSpec) -> bool:
    """Whether the token table is in a pipeline's first and last stage."""
    return spec.parallel.pipeline > 1 and spec.model.tied_embeddings


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
