"""Memory: what a layer's activations weigh, and what recomputing them saves."""

from __future__ import annotations

from dataclasses import replace

from app.theory import activations
from app.theory.formulas.registry import Formula, Input
from app.theory.formulas.shared import (
    BYTES_EACH,
    FLASH,
    HEADS,
    HIDDEN,
    KORTHIKANTI,
    LAYERS,
    MICRO_BATCH,
    PARAMETERS,
    SEQUENCE,
    SEQUENCE_PARALLEL,
    TENSOR,
    TOKENS,
    Inputs,
    by_case,
    plain,
)

_CHEN = "Chen et al. 2016, section 4"
_ONE_OR_MORE = replace(TENSOR, default=1)
_SBH = r"{sequence} \times {micro_batch} \times {hidden}"
_MATRIX = r"\frac{{5 \times {heads} \times {sequence}}}{{{hidden}}}"
_LAYER = "bf16 values, one-byte dropout masks, an MLP of width 4h; SwiGLU, RMSNorm or no dropout change the 34."


def _layer(sequence: int, micro_batch: int, hidden: int, heads: int, flash: str) -> float:
    return activations.activation_layer_bytes(sequence, micro_batch, hidden, heads, flash == "yes")


def _tensor_layer(sequence: int, micro_batch: int, hidden: int, heads: int, tensor: int) -> float:
    return activations.activation_layer_bytes(sequence, micro_batch, hidden, heads, tensor=tensor)


def _sequence_layer(sequence: int, micro_batch: int, hidden: int, heads: int, tensor: int) -> float:
    return activations.activation_layer_bytes(
        sequence, micro_batch, hidden, heads, tensor=tensor, sequence_parallel=True
    )


def _selective_layer(sequence: int, micro_batch: int, hidden: int, tensor: int, sequence_parallel: str) -> float:
    return activations.selective_layer_bytes(sequence, micro_batch, hidden, tensor, sequence_parallel == "yes")


def _checkpointed(
    sequence: int, micro_batch: int, hidden: int, layers: int, tensor: int, sequence_parallel: str
) -> float:
    return activations.checkpointed_bytes(sequence, micro_batch, hidden, layers, tensor, sequence_parallel == "yes")


def _all_layers(
    sequence: int,
    micro_batch: int,
    hidden: int,
    heads: int,
    layers: int,
    recompute: str,
    flash: str,
    tensor: int,
    sequence_parallel: str,
) -> float:
    return activations.activation_bytes(
        sequence, micro_batch, hidden, heads, layers, recompute, flash == "yes", tensor, sequence_parallel == "yes"
    )


def _factor(inputs: Inputs, matrix: bool) -> tuple[str, str]:
    """Bytes a value of b·s·h costs in one layer, as its layout has it: 34, 10 + 24/t, (34 + 5as/h)/t."""
    if inputs["tensor"] == 1:
        return (r"\left(34 + \frac{5as}{h}\right)", rf"\left(34 + {_MATRIX}\right)") if matrix else ("34", "34")
    if inputs["sequence_parallel"] == "yes":
        if not matrix:
            return r"\frac{34}{t}", r"\frac{{34}}{{{tensor}}}"
        return (
            r"\frac{1}{t}\left(34 + \frac{5as}{h}\right)",
            rf"\frac{{{{1}}}}{{{{{{tensor}}}}}} \times \left(34 + {_MATRIX}\right)",
        )
    added = (
        (r" + \frac{5as}{ht}", r" + \frac{{5 \times {heads} \times {sequence}}}{{{hidden} \times {tensor}}}")
        if matrix
        else ("", "")
    )
    return (
        rf"\left(10 + \frac{{24}}{{t}}{added[0]}\right)",
        rf"\left(10 + \frac{{{{24}}}}{{{{{{tensor}}}}}}{added[1]}\right)",
    )


def _layer_latex(inputs: Inputs) -> tuple[str, str]:
    symbols, values = _factor({**inputs, "tensor": 1}, inputs["flash"] == "no")
    return rf"s\,b\,h\,{symbols}", rf"{_SBH} \times {values}"


def _selective_latex(inputs: Inputs) -> tuple[str, str]:
    symbols, values = _factor(inputs, False)
    return rf"s\,b\,h\,{symbols}", rf"{_SBH} \times {values}"


def _checkpointed_latex(inputs: Inputs) -> tuple[str, str]:
    if inputs["sequence_parallel"] == "yes":
        return r"\frac{2\,s\,b\,h\,L}{t}", rf"\frac{{{{2 \times {_SBH} \times {{layers}}}}}}{{{{{{tensor}}}}}}"
    return r"2\,s\,b\,h\,L", rf"2 \times {_SBH} \times {{layers}}"


def _all_layers_latex(inputs: Inputs) -> tuple[str, str]:
    recompute = inputs["recompute"]
    symbols, values = _factor(inputs, inputs["flash"] == "no" and recompute != "selective")
    if recompute != "full":
        return rf"L\,s\,b\,h\,{symbols}", rf"{{layers}} \times {_SBH} \times {values}"
    stored, stored_values = _checkpointed_latex(inputs)
    return rf"{stored} + s\,b\,h\,{symbols}", rf"{stored_values} + {_SBH} \times {values}"


_SHAPE = (SEQUENCE, MICRO_BATCH, HIDDEN)

ENTRIES: tuple[Formula, ...] = (
    Formula(
        "F03",
        "activation_layer",
        "Activations saved by one layer",
        _layer,
        (*_SHAPE, HEADS, FLASH),
        "bytes",
        "GB",
        by_case(_layer_latex),
        f"{KORTHIKANTI}, section 4",
        f"{_LAYER} No parallelism.",
        example={"sequence": 2048, "micro_batch": 1, "hidden": 4096, "heads": 32},
    ),
    Formula(
        "F03",
        "logits",
        "Logits of one micro-batch",
        activations.logits_bytes,
        (
            SEQUENCE,
            MICRO_BATCH,
            Input("vocab", "Vocabulary", "V", minimum=1, maximum=1e7, integer=True),
            Input("bytes_each", "Bytes each", "w", minimum=1, maximum=8, default=4.0),
        ),
        "bytes",
        "GB",
        plain(r"b\,s\,V\,w", r"{micro_batch} \times {sequence} \times {vocab} \times {bytes_each}"),
        "counting the tensor",
        "The loss keeps a second tensor of this size for its gradient. A fused or vocabulary-parallel loss keeps less.",
        example={"sequence": 4096, "micro_batch": 1, "vocab": 128256, "bytes_each": 2},
    ),
    Formula(
        "F04",
        "activation_layer_tensor",
        "Activations of one layer under tensor parallelism",
        _tensor_layer,
        (*_SHAPE, HEADS, TENSOR),
        "bytes",
        "GB",
        plain(
            r"s\,b\,h\left(10 + \frac{24}{t} + \frac{5as}{ht}\right)",
            rf"{_SBH} \times \left(10 + \frac{{{{24}}}}{{{{{{tensor}}}}}}"
            r" + \frac{{5 \times {heads} \times {sequence}}}{{{hidden} \times {tensor}}}\right)",
        ),
        f"{KORTHIKANTI}, section 4.2.1",
        f"{_LAYER} The 10sbh of norms, dropouts and residuals stay whole on every rank.",
        example={"sequence": 4096, "micro_batch": 1, "hidden": 8192, "heads": 64, "tensor": 8},
    ),
    Formula(
        "F05",
        "activation_layer_sequence",
        "Activations of one layer under tensor and sequence parallelism",
        _sequence_layer,
        (*_SHAPE, HEADS, TENSOR),
        "bytes",
        "GB",
        plain(
            r"\frac{s\,b\,h}{t}\left(34 + \frac{5as}{h}\right)",
            rf"\frac{{{{{_SBH}}}}}{{{{{{tensor}}}}}} \times \left(34 + {_MATRIX}\right)",
        ),
        f"{KORTHIKANTI}, section 4.2.2",
        f"{_LAYER} The tensor ranks must divide the sequence.",
        example={"sequence": 4096, "micro_batch": 1, "hidden": 8192, "heads": 64, "tensor": 8},
    ),
    Formula(
        "F06",
        "activation_layer_selective",
        "Activations of one layer without the attention matrix",
        _selective_layer,
        (*_SHAPE, _ONE_OR_MORE, SEQUENCE_PARALLEL),
        "bytes",
        "GB",
        by_case(_selective_latex),
        f"{KORTHIKANTI}, section 5",
        f"{_LAYER} FlashAttention also keeps its softmax statistics, a few bytes for each head and token.",
        example={"sequence": 4096, "micro_batch": 1, "hidden": 8192},
    ),
    Formula(
        "F06",
        "activation_layer_llama",
        "Activations of one Llama layer",
        activations.llama_layer_bytes,
        (
            *_SHAPE,
            Input("mlp", "Width of the MLP", "f", minimum=1, maximum=1e6, integer=True),
            HEADS,
            Input("key_value_heads", "Key-value heads", "k", minimum=1, maximum=1e4, integer=True),
            BYTES_EACH,
        ),
        "bytes",
        "GB",
        plain(
            r"w\,s\,b\left(6h + 2\frac{k}{a}h + 3f\right)",
            r"{bytes_each} \times {sequence} \times {micro_batch} \times \left(6 \times {hidden}"
            r" + 2 \times \frac{{{key_value_heads}}}{{{heads}}} \times {hidden} + 3 \times {mlp}\right)",
        ),
        "counted tensor by tensor: SwiGLU, grouped queries, RMS norms, no dropout (Touvron et al. 2023)",
        "FlashAttention, whose statistics are left out, and fused norms; eager ones keep their input in fp32 as well.",
        example={
            "sequence": 4096,
            "micro_batch": 1,
            "hidden": 8192,
            "mlp": 28672,
            "heads": 64,
            "key_value_heads": 8,
        },
    ),
    Formula(
        "F07",
        "checkpointed_activations",
        "Layer inputs kept under full recomputation",
        _checkpointed,
        (*_SHAPE, LAYERS, _ONE_OR_MORE, SEQUENCE_PARALLEL),
        "bytes",
        "GB",
        by_case(_checkpointed_latex),
        f"{KORTHIKANTI}, table 2",
        "One checkpoint a layer in bf16. The layer being recomputed comes on top; tensor ranks all keep the same "
        "inputs unless sequence parallelism splits them.",
        example={"sequence": 4096, "micro_batch": 1, "hidden": 8192, "layers": 80},
    ),
    Formula(
        "F07",
        "activations",
        "Activations of all layers",
        _all_layers,
        (
            *_SHAPE,
            HEADS,
            LAYERS,
            Input("recompute", "Recomputation", "", choices=activations.RECOMPUTE, default="none"),
            FLASH,
            _ONE_OR_MORE,
            SEQUENCE_PARALLEL,
        ),
        "bytes",
        "GB",
        by_case(_all_layers_latex),
        f"{KORTHIKANTI}, section 4 and table 2",
        f"{_LAYER} One micro-batch, no pipeline; embeddings and logits come on top. Full keeps one live layer.",
        example={"sequence": 4096, "micro_batch": 1, "hidden": 8192, "heads": 64, "layers": 80, "flash": "yes"},
    ),
    Formula(
        "F07",
        "full_recompute_flops",
        "Training compute with full recomputation",
        activations.full_recompute_flops,
        (PARAMETERS, TOKENS),
        "flop",
        "FLOPs",
        plain(r"8\,N\,D", r"8 \times {parameters} \times {tokens}"),
        "6ND (Kaplan et al. 2020) and one more forward of 2ND (Chen et al. 2016)",
        "Every layer is recomputed once; attention's own matmuls are left out. MFU still counts 6ND.",
        example={"parameters": 7e9, "tokens": 16384},
    ),
    Formula(
        "F08",
        "checkpoint_units",
        "Memory with evenly spaced checkpoints, in layers' activations",
        activations.checkpoint_units,
        (LAYERS, Input("checkpoints", "Checkpoints", "k", minimum=1, maximum=1e5, integer=True)),
        "count",
        "",
        plain(r"k + \frac{L}{k}", r"{checkpoints} + \frac{{{layers}}}{{{checkpoints}}}"),
        _CHEN,
        "Counts a checkpoint as much as a whole layer. A transformer layer's input is a seventeenth of its "
        "activations or less, so there a checkpoint at every layer is better (F07).",
        example={"layers": 24, "checkpoints": 5},
    ),
    Formula(
        "F08",
        "least_checkpoint_units",
        "Least memory with evenly spaced checkpoints, in layers' activations",
        activations.least_checkpoint_units,
        (LAYERS,),
        "count",
        "",
        plain(r"2\sqrt{L}", r"2 \times \sqrt{{{layers}}}"),
        _CHEN,
        "At k = √L, where that is whole and divides L; costs one more forward.",
        example={"layers": 24},
    ),
    Formula(
        "F08",
        "uncheckpointed_forwards",
        "Extra layer forwards when nothing is stored",
        activations.uncheckpointed_forwards,
        (LAYERS,),
        "count",
        "",
        plain(r"\frac{L(L-1)}{2}", r"\frac{{{layers} \times ({layers}-1)}}{{2}}"),
        "counting: layer i needs the i − 1 before it",
        "Only the model's input is kept, and every backward starts from it.",
        example={"layers": 24},
    ),
)
