"""A Llama's size, and how its layers fill a pipeline (F68, F69).

Gated MLPs of three matrices, grouped queries, RMS norms of one scale, no biases.
"""

from __future__ import annotations

from math import ceil

from app.theory.checks import check_divides


def _layer_weights(hidden: int, mlp: int, heads: int, key_value_heads: int) -> float:
    """Weights that multiply, of one layer: 2h²(1 + k/a) + 3hf."""
    check_divides("key_value_heads", key_value_heads, "heads", heads)
    return 2 * hidden**2 * (1 + key_value_heads / heads) + 3 * hidden * mlp


def llama_parameters(
    layers: int, hidden: int, mlp: int, heads: int, key_value_heads: int, vocab: int, tied: str = "no"
) -> float:
    """F69: L(2h²(1 + k/a) + 3hf + 2h) + 2Vh + h, with one table where embedding and head are `tied`.

    Raises SpecError where heads of keys do not divide those of queries. Source: Touvron et al. 2023 (LLaMA), section 2;
    Ainslie et al. 2023 for grouped queries. `transformer.parameter_count` counts tensor by tensor.
    """
    tables = (1 if tied == "yes" else 2) * vocab * hidden
    return layers * (_layer_weights(hidden, mlp, heads, key_value_heads) + 2 * hidden) + tables + hidden


def head_in_layers(hidden: int, mlp: int, heads: int, key_value_heads: int, vocab: int) -> float:
    """F68: the output head's products over those of a layer, V/(2h(1 + k/a) + 3f).

    Attention's own products and the loss are left out. By hand: hV weights against those of a layer.
    """
    return hidden * vocab / _layer_weights(hidden, mlp, heads, key_value_heads)


def stage_excess(layers: int, stages: int) -> float:
    """F68: layers of the largest stage over the mean, ⌈L/p⌉·p/L, when whole layers are dealt out evenly."""
    return ceil(layers / stages) * stages / layers
