"""Memory: what a parameter weighs, who holds it, and what offloading it moves."""

from __future__ import annotations

from dataclasses import replace

from app.theory import offload, state
from app.theory.formulas.registry import Formula, Input
from app.theory.formulas.shared import (
    ACHIEVED,
    BYTES_EACH,
    HIDDEN,
    LAYERS,
    LAYOUT,
    PARAMETERS,
    PART,
    SHARDS,
    STAGES,
    TENSOR,
    ZERO,
    Inputs,
    plain,
)
from app.theory.state import LAYOUTS
from app.units import digits, latex_number

_STAGE = Input(
    "stage",
    "ZeRO stage",
    "",
    minimum=0,
    maximum=3,
    integer=True,
    words={
        "0": "0, nothing sharded",
        "1": "1, the optimizer",
        "2": "2, the gradients as well",
        "3": "3, the weights as well",
    },
)
_UNITS = Input("units", "FSDP units", "U", minimum=1, maximum=1e5, integer=True)
_LIVE = Input("live_units", "Gathered units alive", "u", minimum=0, maximum=1e5, integer=True, default=1)
_LINK = Input("bytes_per_second", "Host link per GPU, one direction", "B", "bytes_per_second", minimum=1, maximum=1e15)
_PEAK = (
    r"\frac{{{bytes_each} \times {parameters}}}{{{ranks}}}"
    r" + {live_units} \times \frac{{{bytes_each} \times {parameters}}}{{{units}}}"
)
_ON_TOP = "Activations, gathered layers and buffers come on top."
_OFFLOAD = "Ren et al. 2021 (ZeRO-Offload), section 4"
_INFINITY = "Rajbhandari et al. 2021 (ZeRO-Infinity), section 4"
_STREAMED = (
    "Weights twice up, gradients once down, shared by all ranks, which then all-gather. "
    "Recomputation fetches the weights once more."
)


def _layout_bytes(inputs: Inputs) -> dict[str, float]:
    """c of a layout, or of the part of it that is asked for."""
    layout, part = LAYOUTS[inputs["layout"]], inputs.get("part", "all")
    return {"c": layout.total if part == "all" else getattr(layout, part)}


def _state_latex(inputs: Inputs) -> tuple[str, str]:
    return r"c\,N", rf"{digits(_layout_bytes(inputs)['c'])} \times {latex_number(inputs['parameters'])}"


def _lora_latex(inputs: Inputs) -> tuple[str, str]:
    frozen, each = digits(inputs["frozen_bytes_each"]), digits(LAYOUTS[inputs["layout"]].total)
    base, adapters = latex_number(inputs["parameters"]), latex_number(inputs["adapter_parameters"])
    return r"w\,N + c\,N_{\mathrm{LoRA}}", rf"{frozen} \times {base} + {each} \times {adapters}"


def _sharded_latex(inputs: Inputs, number: tuple[str, str]) -> tuple[str, str]:
    """The stage's formula with the layout's bytes, 4N + 12N/K at stage 1 of zero-16; `number` is N and its value."""
    layout, stage, part = LAYOUTS[inputs["layout"]], inputs["stage"], inputs.get("part", "all")
    wanted = ("parameters", "gradients", "optimizer") if part == "all" else (part,)
    sharded_from = {"optimizer": 1, "gradients": 2, "parameters": 3}
    whole = sum(getattr(layout, c) for c in wanted if stage < sharded_from[c])
    split = sum(getattr(layout, c) for c in wanted if stage >= sharded_from[c])
    symbols, values = [], []
    if whole or not split:
        symbols.append(f"{digits(whole)}{number[0]}")
        values.append(rf"{digits(whole)} \times {number[1]}")
    if split:
        symbols.append(rf"\frac{{{digits(split)}{number[0]}}}{{K}}")
        values.append(rf"\frac{{{digits(split)} \times {number[1]}}}{{{latex_number(inputs['ranks'])}}}")
    return " + ".join(symbols), " + ".join(values)


def _zero_latex(inputs: Inputs) -> tuple[str, str]:
    return _sharded_latex(inputs, ("N", latex_number(inputs["parameters"])))


def _parallel_latex(inputs: Inputs) -> tuple[str, str]:
    n, t, p = (latex_number(inputs[name]) for name in ("parameters", "tensor", "stages"))
    return _sharded_latex(inputs, (r"\frac{N}{t\,p}", rf"\frac{{{n}}}{{{t} \times {p}}}"))


ENTRIES: tuple[Formula, ...] = (
    Formula(
        "F01",
        "training_state",
        "Training state",
        state.training_state_bytes,
        (PARAMETERS, LAYOUT, PART),
        "bytes",
        "GB",
        _state_latex,
        f"{ZERO}, section 3.1",
        _ON_TOP,
        _layout_bytes,
        example={"parameters": 7e9, "layout": "zero-16"},
    ),
    Formula(
        "F01",
        "lora_state",
        "State when only adapters are trained",
        state.lora_state_bytes,
        (
            PARAMETERS,
            Input("adapter_parameters", "Adapter parameters", r"N_{\mathrm{LoRA}}", minimum=1, maximum=1e15),
            LAYOUT,
            Input("frozen_bytes_each", "Bytes per frozen parameter", "w", minimum=0.25, maximum=4, default=2.0),
        ),
        "bytes",
        "GB",
        _lora_latex,
        "Hu et al. 2021 (LoRA), section 4.2",
        f"Frozen weights have neither gradients nor moments. {_ON_TOP}",
        _layout_bytes,
        example={"parameters": 7e9, "adapter_parameters": 4e7},
    ),
    Formula(
        "F02",
        "zero_state",
        "Model state per rank under ZeRO",
        state.zero_state_bytes,
        (PARAMETERS, SHARDS, _STAGE, LAYOUT, PART),
        "bytes",
        "GB",
        _zero_latex,
        f"{ZERO}, section 5 and figure 1",
        _ON_TOP,
        example={"parameters": 7e9, "ranks": 8, "stage": 1},
    ),
    Formula(
        "F18",
        "fsdp_peak_weights",
        "Most weight bytes alive under FSDP",
        state.fsdp_peak_weight_bytes,
        (PARAMETERS, SHARDS, _UNITS, _LIVE, BYTES_EACH),
        "bytes",
        "GB",
        plain(r"\frac{wN}{K} + u\,\frac{wN}{U}", _PEAK),
        "Zhao et al. 2023 (PyTorch FSDP), section 4",
        "Equal units; the gathered unit's gradient, and optimizer and gradient shards, come on top.",
        example={"parameters": 7e9, "ranks": 8, "units": 32},
    ),
    Formula(
        "F18",
        "fsdp_peak_backward",
        "Most weight and gradient bytes alive in FSDP's backward",
        state.fsdp_peak_backward_bytes,
        (
            PARAMETERS,
            SHARDS,
            _UNITS,
            _LIVE,
            BYTES_EACH,
            Input("gradient_bytes_each", "Bytes per gradient", "g", minimum=1, maximum=8, default=2.0),
        ),
        "bytes",
        "GB",
        plain(
            r"\frac{wN}{K} + u\,\frac{wN}{U} + \frac{gN}{U}",
            _PEAK + r" + \frac{{{gradient_bytes_each} \times {parameters}}}{{{units}}}",
        ),
        "Zhao et al. 2023 (PyTorch FSDP), section 4",
        "Equal units, one unit's gradient not yet reduce-scattered; optimizer and gradient shards come on top.",
        example={"parameters": 7e9, "ranks": 8, "units": 32},
    ),
    Formula(
        "F27",
        "parallel_state",
        "Model state per GPU under 3D parallelism",
        state.parallel_state_bytes,
        (PARAMETERS, TENSOR, STAGES, SHARDS, replace(_STAGE, default=0), LAYOUT),
        "bytes",
        "GB",
        _parallel_latex,
        f"{ZERO}, section 5, for N/(t·p) parameters",
        f"Parameters split evenly; the stages with the embedding and the head hold more. {_ON_TOP}",
        example={"parameters": 7e10, "tensor": 4, "stages": 4, "ranks": 8, "stage": 1},
    ),
    Formula(
        "F70",
        "dim0_shard",
        "Rows of the largest shard under FSDP2",
        state.dim0_shard_rows,
        (Input("rows", "Rows, dimension 0", "d", minimum=1, maximum=1e9, integer=True), SHARDS),
        "count",
        "",
        plain(r"\left\lceil\frac{d}{K}\right\rceil", r"\left\lceil\frac{{{rows}}}{{{ranks}}}\right\rceil"),
        "PyTorch documentation, fully_shard (torch.chunk along dimension 0)",
        "The last ranks hold less, or nothing. FSDP1 cut a flattened group instead.",
        example={"rows": 50257, "ranks": 768},
    ),
    Formula(
        "F52",
        "transformer_parameters",
        "Parameters of a transformer",
        state.transformer_parameters,
        (LAYERS, HIDDEN, Input("vocab", "Vocabulary", "V", minimum=0, maximum=1e7, integer=True, default=0)),
        "count",
        "",
        plain(r"12\,L\,h^2 + V\,h", r"12 \times {layers} \times ({hidden})^2 + {vocab} \times {hidden}"),
        "Kaplan et al. 2020, table 1",
        "Multi-head attention and an MLP of width 4h, tied embeddings; grouped queries, SwiGLU and experts change the "
        "12. Biases, norms and positions are left out.",
        example={"layers": 96, "hidden": 12288},
    ),
    Formula(
        "F57",
        "offload_bytes",
        "Bytes over the host link per step",
        offload.offload_transfer_bytes,
        (PARAMETERS, BYTES_EACH),
        "bytes",
        "GB",
        plain(r"2\,w\,N", r"2 \times {bytes_each} \times {parameters}"),
        _OFFLOAD,
        "Gradients go down, updated weights come up. One GPU, or one that holds the whole model.",
        example={"parameters": 7e9},
    ),
    Formula(
        "F57",
        "offload_time",
        "Time of offload transfers per step",
        offload.offload_transfer_seconds,
        (PARAMETERS, _LINK, BYTES_EACH),
        "seconds",
        "s",
        plain(r"\frac{2\,w\,N}{B}", r"\frac{{2 \times {bytes_each} \times {parameters}}}{{{bytes_per_second}}}"),
        _OFFLOAD,
        "The two directions one after the other; the CPU's optimizer step comes on top. Not for NVMe.",
        example={"parameters": 7e9, "bytes_per_second": 2.5e10},
    ),
    Formula(
        "F57",
        "offload_break_even_tokens",
        "Tokens per GPU that hide offload transfers",
        offload.offload_break_even_tokens,
        (ACHIEVED, _LINK, BYTES_EACH),
        "tokens",
        "tokens",
        plain(
            r"\frac{w\,\eta F}{3B}",
            r"\frac{{{bytes_each} \times {achieved_flops_per_second}}}{{3 \times {bytes_per_second}}}",
        ),
        "2wN bytes against 6N FLOPs per token",
        "Per step, with perfect overlap and the CPU's optimizer step left out.",
        example={"achieved_flops_per_second": 1.56e14, "bytes_per_second": 2.5e10},
    ),
    Formula(
        "F57",
        "streamed_offload_bytes",
        "Bytes over each host link when weights live there",
        offload.streamed_offload_bytes,
        (PARAMETERS, SHARDS, BYTES_EACH),
        "bytes",
        "GB",
        plain(r"\frac{3\,w\,N}{K}", r"\frac{{3 \times {bytes_each} \times {parameters}}}{{{ranks}}}"),
        _INFINITY,
        _STREAMED,
        example={"parameters": 7e10, "ranks": 1},
    ),
    Formula(
        "F57",
        "streamed_offload_time",
        "Time of those transfers when weights live on the host",
        offload.streamed_offload_seconds,
        (PARAMETERS, SHARDS, _LINK, BYTES_EACH),
        "seconds",
        "s",
        plain(
            r"\frac{3\,w\,N}{K\,B}",
            r"\frac{{3 \times {bytes_each} \times {parameters}}}{{{ranks} \times {bytes_per_second}}}",
        ),
        _INFINITY,
        _STREAMED,
        example={"parameters": 7e10, "ranks": 8, "bytes_per_second": 2.5e10},
    ),
)
