"""Context parallelism: bytes of its three forms, the imbalance of a causal mask, and when a ring hides."""

from __future__ import annotations

from dataclasses import replace

from app.theory import context
from app.theory.formulas.registry import Formula, Input
from app.theory.formulas.shared import (
    ACHIEVED,
    BANDWIDTH,
    BYTES_EACH,
    HIDDEN,
    MICRO_BATCH,
    RANKS,
    SEQUENCE,
    Inputs,
    by_case,
    plain,
)

_RANKS = replace(RANKS, label="Context-parallel ranks", symbol="c")
_WIDTH = Input("key_width", "Width of keys", "g", minimum=1, maximum=1e6, integer=True)
_PASSES = Input("passes", "Computed for", "", choices=context.CONTEXT_PASSES, default="training")
_SHAPE = (SEQUENCE, MICRO_BATCH)
_PAIRS = r"2 \times {bytes_each} \times {micro_batch} \times {sequence} \times {key_width}"
_ONCE = r"\frac{{{ranks}-1}}{{{ranks}}}"
_NOTE = "A layer and micro-batch. g is heads of keys and values times their size: grouped queries make it small."


def _ring_latex(inputs: Inputs) -> tuple[str, str]:
    if inputs["passes"] == "forward" or inputs["ranks"] == 1:
        return r"\frac{c-1}{c}\,2wbsg", rf"{_ONCE} \times {_PAIRS}"
    return r"\left(\frac{2(c-1)}{c} + 1\right)2wbsg", rf"\left(2 \times {_ONCE} + 1\right) \times {_PAIRS}"


def _gathered_latex(inputs: Inputs) -> tuple[str, str]:
    if inputs["passes"] == "forward":
        return r"\frac{c-1}{c}\,2wbsg", rf"{_ONCE} \times {_PAIRS}"
    return r"3\,\frac{c-1}{c}\,2wbsg", rf"3 \times {_ONCE} \times {_PAIRS}"


def _ulysses_latex(inputs: Inputs) -> tuple[str, str]:
    values = (
        r"\frac{{{ranks}-1}}{{{ranks}^2}} \times 2 \times {bytes_each} \times {micro_batch} \times {sequence}"
        r" \times ({hidden} + {key_width})"
    )
    if inputs["passes"] == "forward":
        return r"\frac{c-1}{c^2}\,2wbs(h+g)", values
    return r"2\,\frac{c-1}{c^2}\,2wbs(h+g)", rf"2 \times {values}"


ENTRIES: tuple[Formula, ...] = (
    Formula(
        "F60",
        "ring_attention_bytes",
        "Ring attention, bytes each rank sends",
        context.ring_attention_bytes,
        (*_SHAPE, _WIDTH, _RANKS, _PASSES, BYTES_EACH),
        "bytes",
        "MB",
        by_case(_ring_latex),
        "Liu et al. 2023 (Ring Attention), section 3",
        f"{_NOTE} Backward passes keys and values again, and their gradients with them until they are home.",
        example={"sequence": 131072, "micro_batch": 1, "key_width": 1024, "ranks": 16},
    ),
    Formula(
        "F60",
        "gathered_attention_bytes",
        "Attention with gathered keys and values, bytes each rank sends",
        context.gathered_attention_bytes,
        (*_SHAPE, _WIDTH, _RANKS, _PASSES, BYTES_EACH),
        "bytes",
        "MB",
        by_case(_gathered_latex),
        "Llama team 2024 (The Llama 3 Herd of Models), section 3.3.2",
        f"{_NOTE} Backward gathers again and reduce-scatters the gradients.",
        example={"sequence": 131072, "micro_batch": 1, "key_width": 1024, "ranks": 16},
    ),
    Formula(
        "F60",
        "ulysses_bytes",
        "Ulysses, bytes each rank sends",
        context.ulysses_bytes,
        (*_SHAPE, HIDDEN, _WIDTH, _RANKS, _PASSES, BYTES_EACH),
        "bytes",
        "MB",
        by_case(_ulysses_latex),
        "Jacobs et al. 2023 (DeepSpeed-Ulysses), section 3",
        f"{_NOTE} Each rank gets whole heads, so there are at most as many ranks as heads of keys and values.",
        example={"sequence": 131072, "micro_batch": 1, "hidden": 16384, "key_width": 1024, "ranks": 8},
    ),
    Formula(
        "F60",
        "causal_imbalance",
        "Attention of the last shard over the mean",
        context.causal_imbalance,
        (_RANKS,),
        "fraction",
        "×",
        plain(r"\frac{2c-1}{c}", r"\frac{{2 \times {ranks} - 1}}{{{ranks}}}"),
        "shard i sees i whole ones and half of itself",
        "One shard a rank, in order. Two halves a rank, one from each end, are even.",
        example={"ranks": 8},
    ),
    Formula(
        "F60",
        "ring_break_even_tokens",
        "Tokens a rank that hide a step of ring attention",
        context.ring_break_even_tokens,
        (HIDDEN, _WIDTH, ACHIEVED, BANDWIDTH),
        "tokens",
        "tokens",
        plain(
            r"\frac{2\,g\,\eta F}{h\,B}",
            r"\frac{{2 \times {key_width} \times {achieved_flops_per_second}}}{{{hidden} \times {bytes_per_second}}}",
        ),
        "2n²h FLOPs against 4ng bytes",
        "Forward, bf16, causal with balanced halves; without a mask half of it. h is the width of the queries.",
        example={
            "hidden": 16384,
            "key_width": 1024,
            "achieved_flops_per_second": 4.4505e14,
            "bytes_per_second": 50e9,
        },
    ),
)
