"""A Llama's parameters, its head in layers, and stages of unequal size."""

from __future__ import annotations

from app.theory import llama
from app.theory.formulas.registry import Formula, Input
from app.theory.formulas.shared import HEADS, HIDDEN, LAYERS, STAGES, Inputs, by_case, plain

_MLP = Input("mlp", "Width of the MLP", "f", minimum=1, maximum=1e6, integer=True)
_GROUPS = Input("key_value_heads", "Heads of keys and values", "k", minimum=1, maximum=1e4, integer=True)
_VOCAB = Input("vocab", "Vocabulary", "V", minimum=1, maximum=1e7, integer=True)
_TIED = Input("tied", "Embedding and head tied", "", choices=("no", "yes"), default="no")
_LAYER = (
    r"2 \times ({hidden})^2 \times \left(1 + \frac{{{key_value_heads}}}{{{heads}}}\right)"
    r" + 3 \times {hidden} \times {mlp}"
)


def _parameters_latex(inputs: Inputs) -> tuple[str, str]:
    tables = "" if inputs["tied"] == "yes" else "2"
    typed = "" if inputs["tied"] == "yes" else r"2 \times "
    return (
        rf"L\left(2h^2\left(1 + \frac{{k}}{{a}}\right) + 3\,h\,f + 2h\right) + {tables}V\,h + h",
        rf"{{layers}} \times \left({_LAYER} + 2 \times {{hidden}}\right)"
        rf" + {typed}{{vocab}} \times {{hidden}} + {{hidden}}",
    )


ENTRIES: tuple[Formula, ...] = (
    Formula(
        "F69",
        "llama_parameters",
        "Parameters of a Llama",
        llama.llama_parameters,
        (LAYERS, HIDDEN, _MLP, HEADS, _GROUPS, _VOCAB, _TIED),
        "count",
        "billion",
        by_case(_parameters_latex),
        "Touvron et al. 2023 (LLaMA), section 2; Ainslie et al. 2023 (GQA)",
        "SwiGLU, grouped queries, RMS norms, rotary positions, no biases.",
        example={"layers": 80, "hidden": 8192, "mlp": 28672, "heads": 64, "key_value_heads": 8, "vocab": 128256},
    ),
    Formula(
        "F68",
        "head_in_layers",
        "The output head in layers",
        llama.head_in_layers,
        (HIDDEN, _MLP, HEADS, _GROUPS, _VOCAB),
        "count",
        "",
        plain(
            r"\frac{h\,V}{2h^2\left(1 + \frac{k}{a}\right) + 3\,h\,f}",
            rf"\frac{{{{{{hidden}} \times {{vocab}}}}}}{{{{{_LAYER}}}}}",
        ),
        "the head's weights over those of a layer that multiply",
        "FLOPs of products with weights; attention's own and the loss are left out.",
        example={"hidden": 4096, "mlp": 14336, "heads": 32, "key_value_heads": 8, "vocab": 128256},
    ),
    Formula(
        "F68",
        "stage_excess",
        "Largest stage over the mean",
        llama.stage_excess,
        (LAYERS, STAGES),
        "fraction",
        "×",
        plain(
            r"\left\lceil\frac{L}{p}\right\rceil \frac{p}{L}",
            r"\left\lceil\frac{{{layers}}}{{{stages}}}\right\rceil \times \frac{{{stages}}}{{{layers}}}",
        ),
        "whole layers, dealt out evenly",
        "Equal layers; embedding and head are left out.",
        example={"layers": 80, "stages": 12},
    ),
)
