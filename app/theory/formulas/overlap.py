"""Communication: what compute hides of it, and from when it can."""

from __future__ import annotations

from dataclasses import replace

from app.theory import hiding, traffic
from app.theory.formulas.registry import Formula, Input
from app.theory.formulas.shared import (
    ACCUMULATION,
    ACHIEVED,
    BANDWIDTH,
    HIDDEN,
    PASSES,
    SECONDS,
    SHARDS,
    TENSOR,
    Inputs,
    by_case,
    plain,
)

_COMMUNICATION = replace(SECONDS, name="communication_seconds", label="Communication", symbol="T_c", minimum=0)
_COMPUTE = replace(SECONDS, name="compute_seconds", label="Compute", symbol="T")
_OVERLAP = replace(SECONDS, name="overlappable_seconds", label="Compute it can hide under", symbol="T_o", minimum=0)
_TAIL = replace(SECONDS, name="tail_seconds", label="Tail", symbol=r"\tau", minimum=0, default=0.0)
_EXPOSED = r"\max(0, {communication_seconds} - {overlappable_seconds}) + {tail_seconds}"


def _share_latex(inputs: Inputs) -> tuple[str, str]:
    whole, values = r"A\,T", r"{accumulation} \times {compute_seconds}"
    if inputs["of"] == "step":
        whole, values = whole + " + T_c", values + " + {communication_seconds}"
    return rf"\frac{{T_c}}{{{whole}}}", rf"\frac{{{{{{communication_seconds}}}}}}{{{{{values}}}}}"


def _tensor_share_latex(inputs: Inputs) -> tuple[str, str]:
    factor = traffic.tensor_parallel_share_factor(inputs["passes"])
    over, under = factor.numerator, factor.denominator
    return (
        rf"\frac{{{over}}}{{{under}}}\,\frac{{(t-1)\,\eta F}}{{h\,B}}",
        rf"\frac{{{{{over}}}}}{{{{{under}}}}} \times "
        r"\frac{{({tensor}-1) \times {achieved_flops_per_second}}}{{{hidden} \times {bytes_per_second}}}",
    )


ENTRIES: tuple[Formula, ...] = (
    Formula(
        "F51",
        "exposed_communication",
        "Communication that compute does not hide",
        traffic.exposed_seconds,
        (_COMMUNICATION, _OVERLAP, _TAIL),
        "seconds",
        "s",
        plain(r"\max(0, T_c - T_o) + \tau", _EXPOSED),
        "Li et al. 2020 (PyTorch DDP), section 3.2.3",
        "Perfect overlap, and compute no slower for it; kernels of a collective take SMs and bandwidth away.",
        example={"communication_seconds": 4.0, "overlappable_seconds": 3.0},
    ),
    Formula(
        "F51",
        "step_time",
        "Time of a step with overlap",
        traffic.step_seconds,
        (_COMPUTE, _COMMUNICATION, _OVERLAP, _TAIL),
        "seconds",
        "s",
        plain(r"T + \max(0, T_c - T_o) + \tau", r"{compute_seconds} + " + _EXPOSED),
        "Li et al. 2020 (PyTorch DDP), section 3.2.3",
        "Perfect overlap, and compute no slower for it. Under DDP only backward hides, two thirds of the compute.",
        example={"compute_seconds": 4.5, "communication_seconds": 4.0, "overlappable_seconds": 3.0},
    ),
    Formula(
        "F51",
        "communication_share",
        "Communication as a share, without overlap",
        traffic.communication_share,
        (
            _COMMUNICATION,
            _COMPUTE,
            ACCUMULATION,
            Input("of", "Share of the", "", choices=("step", "compute"), default="step"),
        ),
        "fraction",
        "%",
        by_case(_share_latex),
        "the two times, one after the other",
        "Compute is one micro-step's, communication once per step. An upper bound: overlap hides a part.",
        example={"communication_seconds": 2.24, "compute_seconds": 4.5},
    ),
    Formula(
        "F56",
        "fsdp_break_even_tokens",
        "Tokens per GPU that hide FSDP's traffic",
        traffic.fsdp_break_even_tokens,
        (SHARDS, BANDWIDTH, ACHIEVED),
        "tokens",
        "tokens",
        plain(
            r"\frac{\eta F}{B}\,\frac{K-1}{K}",
            r"\frac{{{achieved_flops_per_second}}}{{{bytes_per_second}}} \times \frac{{{ranks}-1}}{{{ranks}}}",
        ),
        "3 transfers of 2N bytes against 6N FLOPs per token",
        "Per micro-step, bf16 weights and gradients.",
        example={"ranks": 2, "achieved_flops_per_second": 1.56e14, "bytes_per_second": 3e11},
    ),
    Formula(
        "F56",
        "ddp_break_even_tokens",
        "Tokens per GPU that hide DDP's traffic",
        traffic.ddp_break_even_tokens,
        (SHARDS, BANDWIDTH, ACHIEVED),
        "tokens",
        "tokens",
        plain(
            r"\frac{2}{3}\,\frac{\eta F}{B}\,\frac{K-1}{K}",
            r"\frac{{2}}{{3}} \times \frac{{{achieved_flops_per_second}}}{{{bytes_per_second}}}"
            r" \times \frac{{{ranks}-1}}{{{ranks}}}",
        ),
        "2 transfers of 2N bytes against 6N FLOPs per token",
        "Per optimizer step, bf16 gradients, against all of the compute; only backward can hide it.",
        example={"ranks": 1000000, "achieved_flops_per_second": 1.56e14, "bytes_per_second": 2.5e10},
    ),
    Formula(
        "F56",
        "tensor_parallel_share",
        "Tensor-parallel communication over compute",
        traffic.tensor_parallel_share,
        (HIDDEN, TENSOR, ACHIEVED, BANDWIDTH, PASSES),
        "fraction",
        "%",
        by_case(_tensor_share_latex),
        "c all-reduces of 2bsh bytes against 24bsh² FLOPs for each forward, split over t",
        "bf16, ring all-reduces, attention's own matmuls left out; batch and sequence cancel.",
        example={
            "hidden": 8192,
            "tensor": 8,
            "achieved_flops_per_second": 1.56e14,
            "bytes_per_second": 3e11,
            "passes": "training",
        },
    ),
    Formula(
        "F64",
        "chunked_overlap",
        "A product and its transfer in chunks",
        hiding.chunked_overlap_seconds,
        (
            _COMPUTE,
            _COMMUNICATION,
            Input("chunks", "Chunks", "n", minimum=1, maximum=1e4, integer=True),
            Input("chunk_seconds", "More for each chunk", "o", "seconds", minimum=0, maximum=10, default=0.0),
        ),
        "seconds",
        "ms",
        plain(
            r"\frac{T + T_c + (n-1)\max(T, T_c)}{n} + n\,o",
            r"\frac{{{compute_seconds} + {communication_seconds} + ({chunks}-1) \times"
            r" \max({compute_seconds}, {communication_seconds})}}{{{chunks}}} + {chunks} \times {chunk_seconds}",
        ),
        "Wang et al. 2023 (Overlap Communication with Dependent Computation via Decomposition), section 3",
        "Equal chunks that do not slow each other. Small products are slower than their share.",
        example={"compute_seconds": 0.008, "communication_seconds": 0.004, "chunks": 8},
    ),
    Formula(
        "F64",
        "overlapped",
        "Compute and communication side by side",
        hiding.overlapped_seconds,
        (
            _COMPUTE,
            _COMMUNICATION,
            Input("reserved_units", "Multiprocessors that communicate", "k", minimum=0, maximum=1e4, integer=True),
            Input("units", "Multiprocessors", "M", minimum=1, maximum=1e4, integer=True, default=132),
        ),
        "seconds",
        "ms",
        plain(
            r"\max(T_c, T + \frac{k}{M}\,T_c)",
            r"\max({communication_seconds}, {compute_seconds} + \frac{{{reserved_units}}}{{{units}}}"
            r" \times {communication_seconds})",
        ),
        "products at (M − k)/M while k of M multiprocessors communicate",
        "Nothing depends on anything. Memory bandwidth and power, which are shared as well, are left out.",
        example={"compute_seconds": 0.016, "communication_seconds": 0.008, "reserved_units": 20},
    ),
)
