"""Which tensors a rank works with, and how many values of them it keeps from step to step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil

from app.theory.runs.over_experts import is_held
from app.theory.runs.over_tensor import cut_over_tensor
from app.theory.runs.place import Place, data_ranks
from app.theory.transformer import Tensor, tensors
from labs.spec import RunSpec


def held_tensors(spec: RunSpec, place: Place) -> list[Tensor]:
    """The tensors of this rank's part of the model, whole along the data axis."""
    every = tensors(spec.model, spec.training.sequence)
    return [cut_over_tensor(tensor, spec.parallel.tensor) for tensor in every if is_held(tensor, spec, place)]


def kept_values(spec: RunSpec, place: Place, held: Sequence[Tensor], component: str) -> int:
    """Values of `component` (parameters, gradients or optimizer) that stay: all of them, or this rank's shard."""
    if spec.parallel.zero < 3:
        return sum(tensor.size for tensor in held)
    return sum(piece(tensor, data_ranks(spec.parallel)) for tensor in held)


def piece(tensor: Tensor, ranks: int) -> int:
    """Values of `tensor` the first rank keeps under FSDP2: whole rows, rounded up."""
    rows = tensor.shape[0]
    return ceil(rows / ranks) * (tensor.size // rows)


def padded_values(held: Iterable[Tensor], ranks: int) -> int:
    """Values that FSDP2 gathers and scatters: equal pieces of whole rows, the last ones padded."""
    return ranks * sum(piece(tensor, ranks) for tensor in held)
