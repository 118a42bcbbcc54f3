"""What context parallelism sends: keys and values round the ring, and in backward their gradients with them.

Source: Liu et al. 2023 (ring attention), section 3. The gradients go one step further than the keys and values: home.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from app.theory.context import ring_sends
from app.theory.lab_runs.transfers import Transfer, transfer
from app.theory.lab_runs.values import multiplied_bytes, recomputed
from app.theory.transformer import Tensor, head_size
from labs.spec import RunSpec
from labs.spec.events import StepPhase


def context_transfers(spec: RunSpec, held: Sequence[Tensor]) -> Iterator[Transfer]:
    """What a rank that holds `held` passes on in a step. Its key and value heads may be cut over tensor."""
    ranks, training = spec.parallel.context, spec.training
    if ranks == 1:
        return
    sends = ring_sends(ranks)
    layers = {tensor.layer for tensor in held if tensor.layer is not None}
    tokens = training.micro_batch * training.sequence // ranks
    heads = spec.model.kv_heads // spec.parallel.tensor
    size = float(multiplied_bytes(spec) * 2 * tokens * heads * head_size(spec.model))
    sent: tuple[tuple[str, StepPhase, int], ...] = (
        ("Keys and values round the ring", "forward", len(layers) * sends.forward),
        ("Keys and values round the ring, recomputed", "backward", recomputed(spec, layers) * sends.forward),
        ("Keys and values round again", "backward", len(layers) * sends.backward),
        ("Gradients of keys and values, and home", "backward", len(layers) * sends.gradients),
    )
    for title, phase, rounds in sent:
        count = training.micro_batches * rounds
        if count:
            yield transfer(title, "send", phase, "context", ranks, count, count * size)
