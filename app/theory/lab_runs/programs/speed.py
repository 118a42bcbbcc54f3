"""What the `speed` program should count: the FLOPs of a step, and what a slow loader adds to it.

The rate, and with it MFU, is the machine's own: nothing is expected of it beforehand.
"""

from __future__ import annotations

from math import prod

from app.theory.compute import attention_flops, pass_flops, training_flops
from app.theory.lab_runs.programs.parts import Expected
from app.theory.transformer import Tensor, tensors
from labs.spec import SpeedOptions

_LAST_PRODUCT = "MLP down"


def expect(options: SpeedOptions, ranks: int) -> Expected:
    """6ND and attention's own products. Full recomputation runs the layers' forward once more, but stops where the last
    tensor is that backward needs: each layer's last product is spared."""
    tokens, every = options.tokens_per_step, list(tensors(options.model, options.sequence))
    attention = attention_flops(tokens, options.layers, options.hidden, options.sequence)
    model = training_flops(_multiplied(every), tokens) + attention
    repeated = _multiplied([each for each in every if each.layer is not None and each.name != _LAST_PRODUCT])
    again = pass_flops(repeated, tokens, "forward") + attention / 3 if options.recompute == "full" else 0.0
    quantities = {"model_flops_per_step": model, "hardware_flops_per_step": model + again}
    if not options.prefetch:  # with it only what computing does not cover, which is the machine's matter
        quantities["waiting_seconds"] = options.loader_seconds
    return Expected((), quantities)


def _multiplied(every: list[Tensor]) -> int:
    """Parameters that are multiplied by: matrices, without the table of positions, which is only looked up."""
    return sum(prod(each.shape) for each in every if len(each.shape) > 1 and each.name != "position embedding")
