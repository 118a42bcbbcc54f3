"""A model of a size one names: a shape derived from its parameters, of which any part may be given instead.

Published models keep their heads 128 wide and their hidden size near 128 times their layers (GPT-3's at 13B and 175B
128, Llama 3's at 8B, 70B and 405B 128, 102 and 130), and loss depends on that little (Kaplan et al. 2020, section 3.1).
So a layer has about 12 h² parameters, and N ≈ 12 · 128² · n³ for n layers with n heads. The width of the MLP then makes
the count come out.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt
from typing import Any

from app.theory.presets import ARCHITECTURES
from app.theory.transformer import parameter_count
from labs.spec import MAX_HIDDEN, MAX_LAYERS, Model

HEAD = 128  # width of a head
TOGETHER = 8  # heads come in eights, for the tensor ranks of a node, and layers in fours, for stages
LAYERS_TOGETHER = 4
WIDTHS = 128  # of which an MLP's width is a multiple: what matrix units like, on eight tensor ranks of at most 16
LAYER = 12.0  # parameters of a layer over h²
SIZES = ("layers", "hidden", "heads", "kv_heads", "ffn_hidden", "vocab")  # what may be given
LEAST_PARAMETERS, MOST_PARAMETERS = 50e6, 1e14  # below, the table of tokens is nearly all there is
_MLP_OVER_HIDDEN = {"gpt": 4.0, "llama": 3.5}
_LARGE = 2e9  # parameters from which a table of 128k tokens is a small part


def own_model(parameters: float, architecture: str, given: Mapping[str, int], sequence: int) -> Model:
    """The shape of about `parameters` with the sizes that are given as they are. Raises SpecError where those do not
    go together; what they come to is `parameter_count`."""
    sizes = _derived(parameters, architecture, given)
    rest = dict(ARCHITECTURES[architecture])
    model = Model.model_validate(sizes | rest)
    if "layers" not in given:
        layers = _layers(model, parameters, sequence)
        model = model.model_copy(update={"layers": layers})
    if "ffn_hidden" not in given:
        model = model.model_copy(update={"ffn_hidden": _mlp_width(model, parameters, sequence)})
    return model


def _derived(parameters: float, architecture: str, given: Mapping[str, int]) -> dict[str, Any]:
    """All sizes but for what makes the count come out."""
    heads = given.get("heads") or (
        max(1, round(given["hidden"] / HEAD)) if "hidden" in given else _heads(parameters, given.get("layers"))
    )
    hidden = given.get("hidden") or min(HEAD * heads, MAX_HIDDEN)
    grouped = architecture == "llama" and heads > TOGETHER and heads % TOGETHER == 0
    vocab = 50257 if architecture == "gpt" else 128256 if parameters >= _LARGE else 32000
    return {
        "layers": given.get("layers") or 1,
        "hidden": hidden,
        "heads": heads,
        "kv_heads": given.get("kv_heads") or (TOGETHER if grouped else heads),
        "ffn_hidden": given.get("ffn_hidden") or _multiple(_MLP_OVER_HIDDEN[architecture] * hidden, WIDTHS),
        "vocab": given.get("vocab") or vocab,
    }


def _heads(parameters: float, layers: int | None) -> int:
    """As many as layers, or where those are given, as wide as they leave it."""
    each = LAYER * HEAD**2
    wanted = sqrt(parameters / (each * layers)) if layers else (parameters / each) ** (1 / 3)
    return _multiple(wanted, TOGETHER) if wanted >= TOGETHER else max(1, 2 ** round(wanted).bit_length() // 2)


def _layers(model: Model, parameters: float, sequence: int) -> int:
    one, two = (parameter_count(model.model_copy(update={"layers": n}), sequence) for n in (1, 2))
    wanted = min(1 + (parameters - one) / (two - one), MAX_LAYERS)
    return _multiple(wanted, LAYERS_TOGETHER) if wanted >= LAYERS_TOGETHER else max(1, round(wanted))


def _mlp_width(model: Model, parameters: float, sequence: int) -> int:
    """A multiple of `WIDTHS` that brings the count nearest, between a hidden size and eight."""
    one, two = (parameter_count(model.model_copy(update={"ffn_hidden": n * WIDTHS}), sequence) for n in (1, 2))
    wanted = round(1 + (parameters - one) / (two - one)) * WIDTHS
    least = _multiple(model.hidden, WIDTHS)
    return min(max(wanted, least), 8 * least)


def _multiple(value: float, of: int) -> int:
    """The multiple nearest to it, and one at least."""
    return max(1, round(value / of)) * of
