"""Activation memory of transformer layers, bf16 with one-byte dropout masks (Korthikanti et al. 2022, section 4).

A layer is the paper's: multi-head attention and a two-matrix MLP of width 4h. All sizes are bytes on one rank.
"""

from __future__ import annotations

from math import sqrt

from app.theory.checks import check_at_most, check_divides

RECOMPUTE = ("none", "selective", "full")


def activation_layer_bytes(
    sequence: int,
    micro_batch: int,
    hidden: int,
    heads: int,
    flash: bool = False,
    tensor: int = 1,
    sequence_parallel: bool = False,
) -> float:
    """F03 to F06: bytes one layer saves for backward, sbh(10 + 24/t + 5as/(ht)); on one rank sbh(34 + 5as/h).

    With `flash` (or selective recomputation) the attention matrix is not kept; with `sequence_parallel` the 10sbh of
    norms, dropouts and residuals are split too. Raises SpecError where heads do not divide the hidden size, or
    tensor ranks the heads (with `sequence_parallel` also the sequence).
    Source: Korthikanti et al. 2022, section 4 and table 2.
    """
    check_divides("heads", heads, "hidden", hidden)
    check_divides("tensor", tensor, "heads", heads)
    kept = selective_layer_bytes(sequence, micro_batch, hidden, tensor, sequence_parallel)
    return kept if flash else kept + 5 * heads * sequence**2 * micro_batch / tensor


def selective_layer_bytes(
    sequence: int, micro_batch: int, hidden: int, tensor: int = 1, sequence_parallel: bool = False
) -> float:
    """F06: a layer whose attention matrix is recomputed or never written, sbh(10 + 24/t), or 34sbh/t.

    Raises SpecError where `tensor` does not divide the hidden size (with `sequence_parallel` also the sequence).
    Source: Korthikanti et al. 2022, section 5.
    """
    check_divides("tensor", tensor, "hidden", hidden)
    if sequence_parallel:
        check_divides("tensor", tensor, "sequence", sequence)
    replicated = 10 / tensor if sequence_parallel else 10
    return sequence * micro_batch * hidden * (replicated + 24 / tensor)


def checkpointed_bytes(
    sequence: int,
    micro_batch: int,
    hidden: int,
    layers: int = 1,
    tensor: int = 1,
    sequence_parallel: bool = False,
) -> float:
    """F07: bytes of the layer inputs that full recomputation keeps, 2sbh a layer.

    Tensor ranks hold the same inputs unless `sequence_parallel` splits them; then SpecError is raised where `tensor`
    does not divide the sequence.
    """
    if sequence_parallel:
        check_divides("tensor", tensor, "sequence", sequence)
    return layers * 2 * sequence * micro_batch * hidden / (tensor if sequence_parallel else 1)


def llama_layer_bytes(
    sequence: int, micro_batch: int, hidden: int, mlp: int, heads: int, key_value_heads: int, bytes_each: float = 2.0
) -> float:
    """F06: bytes a Llama layer keeps under FlashAttention, w·sb(6h + 2gh + 3f), g the key-value heads' share of heads.

    By counting: two norms' inputs and outputs and attention's query and output take 6h values a token, keys and values
    2gh, the MLP's gate, up and product 3f. RMS norms are fused, and there is no dropout. Raises SpecError where the
    heads do not divide the hidden size, or the key-value heads the heads.
    """
    check_divides("heads", heads, "hidden", hidden)
    check_divides("key_value_heads", key_value_heads, "heads", heads)
    values = 6 * hidden + 2 * hidden * key_value_heads / heads + 3 * mlp
    return bytes_each * sequence * micro_batch * values


def activation_bytes(
    sequence: int,
    micro_batch: int,
    hidden: int,
    heads: int,
    layers: int,
    recompute: str = "none",
    flash: bool = False,
    tensor: int = 1,
    sequence_parallel: bool = False,
) -> float:
    """F07: bytes of all `layers` for one micro-batch under `recompute`: `none`, `selective` or `full`.

    `full` keeps every layer's input and, at its peak, one recomputed layer. Raises SpecError as the layer does.
    Source: Korthikanti et al. 2022, table 2; the live layer by counting what its backward needs.
    """
    light = flash or recompute == "selective"
    layer = activation_layer_bytes(sequence, micro_batch, hidden, heads, light, tensor, sequence_parallel)
    if recompute == "full":
        return checkpointed_bytes(sequence, micro_batch, hidden, layers, tensor, sequence_parallel) + layer
    return layers * layer


def full_recompute_flops(parameters: float, tokens: float) -> float:
    """F07: FLOPs of training with full recomputation, 8ND: the 6N per token and one more forward of 2N."""
    return 8 * parameters * tokens


def checkpoint_units(layers: int, checkpoints: int) -> float:
    """F08: memory in layers' activations with k evenly spaced checkpoints, k + L/k: the checkpoints and one segment.

    Raises SpecError where there are more checkpoints than layers. Source: Chen et al. 2016, section 4.
    """
    check_at_most("checkpoints", checkpoints, "layers", layers)
    return checkpoints + layers / checkpoints


def least_checkpoint_units(layers: int) -> float:
    """F08: the least of k + L/k, 2√L at k = √L. Source: Chen et al. 2016, section 4."""
    return 2 * sqrt(layers)


def uncheckpointed_forwards(layers: int) -> int:
    """F08: extra layer forwards when only the input is stored: layer i is reached by i − 1 forwards, L(L−1)/2."""
    return layers * (layers - 1) // 2


def logits_bytes(sequence: int, micro_batch: int, vocab: int, bytes_each: float = 4.0) -> float:
    """F03: bytes of the logits of one micro-batch, b·s·V values of `bytes_each` (2 in bf16, 4 in fp32)."""
    return sequence * micro_batch * vocab * bytes_each
