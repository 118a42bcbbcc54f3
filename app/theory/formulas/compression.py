"""Communication: what compressing gradients saves."""

from __future__ import annotations

from dataclasses import replace

from app.theory import compression
from app.theory.formulas.registry import Formula, Input
from app.theory.formulas.shared import PARAMETERS, RANKS, plain

_DENSITY = Input("density", "Share kept", r"\rho", "fraction", minimum=1e-6, maximum=1)
_VALUE = Input("value_bytes", "Bytes per value", "w", minimum=1, maximum=8, default=2.0)
_INDEX = Input("index_bytes", "Bytes per index", "i", minimum=0, maximum=8, default=4.0)
_VALUE_FP32 = replace(_VALUE, default=4.0)


def _bits(name: str, label: str, symbol: str) -> Input:
    return Input(name, label, symbol, minimum=1, maximum=64)


ENTRIES: tuple[Formula, ...] = (
    Formula(
        "F45",
        "quantised_ratio",
        "Compression by fewer bits",
        compression.quantised_ratio,
        (_bits("from_bits", "Bits before", "b_0"), _bits("to_bits", "Bits after", "b_1")),
        "fraction",
        "×",
        plain(r"\frac{b_0}{b_1}", r"\frac{{{from_bits}}}{{{to_bits}}}"),
        "counting bits",
        "Scales and error feedback, which 1-bit methods need, come on top.",
        example={"from_bits": 32, "to_bits": 16},
    ),
    Formula(
        "F45",
        "top_k_ratio",
        "Compression by keeping the largest values",
        compression.top_k_ratio,
        (_DENSITY, _VALUE_FP32, _INDEX),
        "fraction",
        "×",
        plain(
            r"\frac{w}{\rho\,(w + i)}", r"\frac{{{value_bytes}}}{{{density} \times ({value_bytes} + {index_bytes})}}"
        ),
        "Lin et al. 2018 (Deep Gradient Compression), section 3",
        "Of what one rank sends, against dense values of the same type; sums of sparse gradients are denser (F46).",
        example={"density": 0.01},
    ),
    Formula(
        "F45",
        "power_sgd_ratio",
        "Compression by a low rank",
        compression.power_sgd_ratio,
        (
            Input("rows", "Rows", "n", minimum=1, maximum=1e6, integer=True),
            Input("columns", "Columns", "m", minimum=1, maximum=1e6, integer=True),
            Input("rank", "Rank", "r", minimum=1, maximum=1e6, integer=True),
        ),
        "fraction",
        "×",
        plain(r"\frac{n\,m}{r\,(n + m)}", r"\frac{{{rows} \times {columns}}}{{{rank} \times ({rows} + {columns})}}"),
        "Vogels et al. 2019 (PowerSGD), section 3",
        "One matrix; vectors, such as biases, are sent whole. Both factors are summed by all-reduce.",
        example={"rows": 4096, "columns": 4096, "rank": 1},
    ),
    Formula(
        "F46",
        "top_k_gather_bytes",
        "Sparse gradients, bytes each rank receives",
        compression.top_k_gather_bytes,
        (PARAMETERS, RANKS, _DENSITY, _VALUE, _INDEX),
        "bytes",
        "GB",
        plain(
            r"(n-1)\,\rho\,N\,(w + i)",
            r"({ranks}-1) \times {density} \times {parameters} \times ({value_bytes} + {index_bytes})",
        ),
        "counting an all-gather of n sparse gradients",
        "Grows with the ranks, where a ring all-reduce does not.",
        example={"parameters": 7e9, "ranks": 64, "density": 0.01},
    ),
    Formula(
        "F46",
        "top_k_break_even_ranks",
        "Ranks from which sparse gradients save nothing",
        compression.top_k_break_even_ranks,
        (_DENSITY, _VALUE, _INDEX),
        "count",
        "GPUs",
        plain(
            r"\frac{2w}{\rho\,(w + i)}",
            r"\frac{{2 \times {value_bytes}}}{{{density} \times ({value_bytes} + {index_bytes})}}",
        ),
        "F46 set equal to F10",
        "Against a dense ring all-reduce of the same values; bytes only, not latency.",
        example={"density": 0.01},
    ),
)
