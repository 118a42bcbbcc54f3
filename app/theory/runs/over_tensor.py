"""What tensor parallelism cuts, and what it sends: Megatron's sums, whole or in two halves.

Source: Shoeybi et al. 2019, section 3; Korthikanti et al. 2022, section 4.2.2, with its gather of the inputs again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from app.theory.runs.place import Place, shard_count
from app.theory.runs.transfers import FP32_BYTES, Transfer, transfer
from app.theory.transformer import Tensor
from labs.spec import RunSpec

_BY_OUTPUTS = ("token embedding", "head", "query", "key", "value", "MLP up", "MLP gate")
_BY_INPUTS = ("attention output", "MLP down")


def cut_over_tensor(tensor: Tensor, ranks: int) -> Tensor:
    """A rank's part of `tensor`: some of its outputs, some of its inputs, or, where it is not cut, all of it."""
    rows, *columns = tensor.shape
    if tensor.name in _BY_OUTPUTS:
        return replace(tensor, shape=(rows // ranks, *columns))
    if tensor.name in _BY_INPUTS:
        return replace(tensor, shape=(rows, *(each // ranks for each in columns)))
    return tensor


def tensor_transfers(spec: RunSpec, held: Sequence[Tensor], place: Place) -> Iterator[Transfer]:
    """What a rank that holds `held` sends in a step: for every layer, the two ends it has, and the loss."""
    ranks, micro_steps = spec.parallel.tensor, spec.training.micro_batches
    if ranks == 1:
        return
    names = [tensor.name for tensor in held]
    first, last = place.pipeline == 0, "final norm weight" in names
    exits, entrances = 2 * names.count("attention output"), 2 * names.count("attention output")
    tokens = spec.training.micro_batch * spec.training.sequence // spec.parallel.context
    whole = float(FP32_BYTES * tokens * spec.model.hidden)

    def row(title: str, operation: str, phase: str, count: int, size: float) -> Iterator[Transfer]:
        if count:
            yield transfer(title, operation, phase, "tensor", ranks, micro_steps * count, micro_steps * count * size)

    exits, entrances = exits + first, entrances + last  # the table's result, the head's input
    if spec.parallel.sequence_parallel:
        yield from row("Reduce-scatter, results", "reduce_scatter", "forward", exits, whole)
        yield from row("All-gather, inputs", "all_gather", "forward", entrances, whole)
        yield from row("All-gather, gradients of results", "all_gather", "backward", exits, whole)
        yield from row("All-gather, inputs again", "all_gather", "backward", entrances, whole)
        yield from row("Reduce-scatter, gradients of inputs", "reduce_scatter", "backward", entrances, whole)
        yield from _replicated_gradients(spec, held, place)
    else:
        yield from row("All-reduce, results", "all_reduce", "forward", exits, whole)
        yield from row("All-reduce, gradients of inputs", "all_reduce", "backward", entrances, whole)
    if last:
        yield from row("All-reduce, cross entropy", "all_reduce", "forward", 3, float(FP32_BYTES * tokens))


def _replicated_gradients(spec: RunSpec, held: Sequence[Tensor], place: Place) -> Iterator[Transfer]:
    """Norms and positions saw a stretch of the sequence: one sum a step, of what the rank holds of their gradients."""
    replicated = [tensor for tensor in held if "norm" in tensor.name or tensor.name == "position embedding"]
    parallel = spec.parallel
    ranks, rank = shard_count(parallel) * parallel.context, place.shard * parallel.context + place.context
    if parallel.zero < 3:
        ranks, rank = 1, 0
    values = sum(own_values(tensor, ranks, rank) for tensor in replicated)
    if values:
        yield transfer(
            "All-reduce, gradients of norms and positions", "all_reduce", "backward", "tensor", spec.parallel.tensor, 1,
            float(FP32_BYTES * values),
        )  # fmt: skip


def own_values(tensor: Tensor, ranks: int, rank: int) -> int:
    """Values of `tensor` that rank `rank` of `ranks` keeps under FSDP2: whole rows, the last ranks fewer or none."""
    rows = tensor.shape[0]
    each = -(-rows // ranks)
    return max(0, min(each, rows - rank * each)) * (tensor.size // rows)
