"""What tensor parallelism sends: Megatron's sums, whole or in two halves.

Source: Shoeybi et al. 2019, section 3; Korthikanti et al. 2022, section 4.2.2, with its gather of the inputs again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from app.theory.lab_runs.held import own_gradient_values
from app.theory.lab_runs.place import Place
from app.theory.lab_runs.transfers import Transfer, transfer
from app.theory.lab_runs.values import FP32_BYTES, multiplied_bytes, recomputed, stream_bytes
from app.theory.state import LAYOUTS
from app.theory.transformer import Tensor
from labs.spec import RunSpec
from labs.spec.events import StepPhase


def tensor_transfers(spec: RunSpec, held: Sequence[Tensor], place: Place) -> Iterator[Transfer]:
    """What a rank that holds `held` sends in a step: for every layer, the two ends it has, and the loss.

    A layer that is computed again in backward sends its results, and with sequence parallelism gathers its inputs, a
    second time.
    """
    ranks, micro_steps = spec.parallel.tensor, spec.training.micro_batches
    if ranks == 1:
        return
    names = [tensor.name for tensor in held]
    first, last = place.pipeline == 0, "final norm weight" in names
    in_layers = 2 * names.count("attention output")
    again = 2 * recomputed(spec, {tensor.layer for tensor in held if tensor.layer is not None})
    tokens = spec.training.micro_batch * spec.training.sequence // spec.parallel.context
    each, of_table = (tokens * spec.model.hidden * size for size in (multiplied_bytes(spec), stream_bytes(spec)))

    def row(title: str, operation: str, phase: StepPhase, count: int, size_bytes: int) -> Iterator[Transfer]:
        if count:
            sent = float(micro_steps * size_bytes)
            yield transfer(title, operation, phase, "tensor", ranks, micro_steps * count, sent)

    exits, entrances = in_layers + first, in_layers + last  # the table's result, the head's input
    out, into = in_layers * each + first * of_table, entrances * each
    if spec.parallel.sequence_parallel:
        yield from row("Reduce-scatter, results", "reduce_scatter", "forward", exits, out)
        yield from row("All-gather, inputs", "all_gather", "forward", entrances, into)
        yield from row("Reduce-scatter, results recomputed", "reduce_scatter", "backward", again, again * each)
        yield from row("All-gather, inputs recomputed", "all_gather", "backward", again, again * each)
        yield from row("All-gather, gradients of results", "all_gather", "backward", exits, out)
        yield from row("All-gather, inputs again", "all_gather", "backward", entrances, into)
        yield from row("Reduce-scatter, gradients of inputs", "reduce_scatter", "backward", entrances, into)
        yield from _replicated_gradients(spec, held, place)
    else:
        yield from row("All-reduce, results", "all_reduce", "forward", exits, out)
        yield from row("All-reduce, results recomputed", "all_reduce", "backward", again, again * each)
        yield from row("All-reduce, gradients of inputs", "all_reduce", "backward", entrances, into)
    if last:
        yield from row("All-reduce, cross entropy", "all_reduce", "forward", 3, 3 * FP32_BYTES * tokens)


def _replicated_gradients(spec: RunSpec, held: Sequence[Tensor], place: Place) -> Iterator[Transfer]:
    """Norms and positions saw a shard of the sequence: one sum a step, of what the rank holds of their gradients."""
    replicated = [tensor for tensor in held if "norm" in tensor.name or tensor.name == "position embedding"]
    values = own_gradient_values(spec, place, held, replicated)
    if values:
        yield transfer(
            "All-reduce, gradients of norms and positions",
            "all_reduce",
            "backward",
            "tensor",
            spec.parallel.tensor,
            1,
            LAYOUTS[spec.training.state_layout].gradients * values,
        )
