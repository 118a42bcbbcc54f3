"""Which tensors a rank works with, and how many values of them it keeps from step to step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil

from app.theory.runs.over_tensor import cut_over_tensor
from app.theory.runs.place import Place, data_rank, data_ranks
from app.theory.schedules import chunk_of
from app.theory.transformer import Tensor, tensors
from labs.spec import RunSpec


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


def kept_values(spec: RunSpec, place: Place, held: Sequence[Tensor], component: str) -> int:
    """Values of `component` (parameters, gradients or optimizer) that stay: all of them, or this rank's shard."""
    if spec.parallel.zero < 3:
        return sum(tensor.size for tensor in held)
    return sum(piece(tensor, shards(tensor, spec)) for tensor in held)


def shards(tensor: Tensor, spec: RunSpec) -> int:
    """Ranks that share a tensor under ZeRO-3: all data ranks, or those of them that hold the same experts."""
    return data_ranks(spec.parallel) // (spec.parallel.expert if is_averaged_apart(tensor, spec) else 1)


def piece(tensor: Tensor, ranks: int) -> int:
    """Values of `tensor` the first rank keeps under FSDP2: whole rows, rounded up."""
    rows = tensor.shape[0]
    return ceil(rows / ranks) * (tensor.size // rows)


def padded_values(held: Iterable[Tensor], ranks: int) -> int:
    """Values that FSDP2 gathers and scatters: equal pieces of whole rows, the last ones padded."""
    return ranks * sum(piece(tensor, ranks) for tensor in held)
