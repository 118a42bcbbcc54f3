"""What expert parallelism sends.

How many rows each rank gets is the router's to decide; over the ranks of a group together it is exactly what they send.
Source: Lepikhin et al. 2020 (GShard), section 3.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from app.theory.lab_runs.held import padded_values
from app.theory.lab_runs.over_data import fsdp_bytes
from app.theory.lab_runs.place import data_ranks
from app.theory.lab_runs.transfers import Transfer, transfer
from app.theory.lab_runs.values import multiplied_bytes, recomputed
from app.theory.state import LAYOUTS
from app.theory.transformer import Tensor
from labs.spec import RunSpec
from labs.spec.events import StepPhase

COUNT_BYTES = 8  # how many rows to expect, as int64


def expert_transfers(spec: RunSpec, held: Sequence[Tensor]) -> Iterator[Transfer]:
    """What a rank that holds `held` sends in a step: rows there and back, forward and backward, and gradients once."""
    ranks, training = spec.parallel.expert, spec.training
    if ranks == 1:
        return
    layers = {tensor.layer for tensor in held if tensor.name == "router" and tensor.layer is not None}
    once, again = (training.micro_batches * count for count in (len(layers), recomputed(spec, layers)))
    tokens = training.micro_batch * training.sequence // spec.parallel.context
    rows = float(multiplied_bytes(spec) * tokens * spec.model.active_experts * spec.model.hidden)
    counts = float(COUNT_BYTES * spec.model.experts)
    sent: tuple[tuple[str, StepPhase, int, float, bool], ...] = (
        ("How many rows to expect", "forward", once, counts, False),
        ("Rows to their experts", "forward", once, rows, False),
        ("Results back (the ranks' mean)", "forward", once, rows, True),
        ("How many rows to expect, recomputed", "backward", again, counts, False),
        ("Rows to their experts, recomputed", "backward", again, rows, False),
        ("Results back, recomputed (the ranks' mean)", "backward", again, rows, True),
        ("Gradients of results to the experts", "backward", once, rows, False),
        ("Gradients of rows back (the ranks' mean)", "backward", once, rows, True),
    )
    for title, phase, times, size, is_mean in sent:
        if times:
            yield transfer(title, "all_to_all", phase, "expert", ranks, times, times * size, is_mean=is_mean)
    yield from _gradients(spec, [tensor for tensor in held if tensor.expert is not None])


def _gradients(spec: RunSpec, experts: Sequence[Tensor]) -> Iterator[Transfer]:
    """An expert is averaged, and under ZeRO-3 sharded, over those that hold it: a unit for each layer's experts."""
    ranks, micro_steps = data_ranks(spec.parallel) // spec.parallel.expert, spec.training.micro_batches
    if ranks == 1:
        return

    def row(title: str, operation: str, phase: StepPhase, count: int, size: float) -> Transfer:
        return transfer(title, operation, phase, "expert_replicas", ranks, count, count * size)

    if spec.parallel.zero < 3:
        size = LAYOUTS[spec.training.state_layout].gradients * sum(tensor.size for tensor in experts)
        yield row("All-reduce, gradients of experts", "all_reduce", "backward", 1, size)
        return
    times = micro_steps * len({tensor.layer for tensor in experts})
    layer = padded_values([each for each in experts if each.layer == experts[0].layer], ranks)
    weight, gradient = (size * layer for size in fsdp_bytes(spec))
    yield row("All-gather, experts, forward", "all_gather", "forward", times, weight)
    if spec.training.reshard_after_forward:
        yield row("All-gather, experts, backward", "all_gather", "backward", times, weight)
    yield row("Reduce-scatter, gradients of experts", "reduce_scatter", "backward", times, gradient)
