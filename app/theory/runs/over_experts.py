"""What expert parallelism leaves a rank of the experts, and what it sends.

How many rows each rank gets is the router's to decide; over the ranks of a group together it is exactly what they send.
Source: Lepikhin et al. 2020 (GShard), section 3.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from app.theory.runs.place import Place, data_rank, data_ranks
from app.theory.runs.transfers import Transfer, transfer
from app.theory.transformer import Tensor
from labs.spec import RunSpec

FP32_BYTES = 4
COUNT_BYTES = 8  # how many rows to expect, as int64


def is_held(tensor: Tensor, spec: RunSpec, place: Place) -> bool:
    """Whether a rank holds `tensor`: what is no routed expert, and its share of those."""
    if tensor.expert is None:
        return True
    each = spec.model.experts // spec.parallel.expert
    return tensor.expert // each == data_rank(spec.parallel, place) % spec.parallel.expert


def is_averaged_apart(tensor: Tensor, spec: RunSpec) -> bool:
    """Whether its gradient is no matter of all data ranks, because not all of them hold it."""
    return spec.parallel.expert > 1 and tensor.expert is not None


def expert_transfers(spec: RunSpec, held: Sequence[Tensor]) -> Iterator[Transfer]:
    """What a rank that holds `held` sends in a step: rows there and back, forward and backward, and gradients once."""
    ranks, training = spec.parallel.expert, spec.training
    if ranks == 1:
        return
    layers = [tensor.name for tensor in held].count("router")
    times = training.micro_batches * layers
    tokens = training.micro_batch * training.sequence // spec.parallel.context
    rows = float(FP32_BYTES * tokens * spec.model.active_experts * spec.model.hidden)
    counts = float(COUNT_BYTES * spec.model.experts)
    for title, phase, size, is_mean in (
        ("How many rows to expect", "forward", counts, False),
        ("Rows to their experts", "forward", rows, False),
        ("Results back", "forward", rows, True),
        ("Gradients of results to the experts", "backward", rows, False),
        ("Gradients of rows back", "backward", rows, True),
    ):
        yield transfer(title, "all_to_all", phase, "expert", ranks, times, times * size, is_mean=is_mean)
    replicas = data_ranks(spec.parallel) // ranks
    if replicas > 1:
        values = sum(tensor.size for tensor in held if tensor.expert is not None)
        size = float(FP32_BYTES * values)
        title = "All-reduce, gradients of experts"
        yield transfer(title, "all_reduce", "backward", "expert_replicas", replicas, 1, size)
