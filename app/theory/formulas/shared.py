"""What several formula sections use: sources and inputs that recur, and LaTeX with or without cases."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from app.theory import traffic
from app.theory.formulas.registry import Input, Latex
from app.theory.state import LAYOUTS
from app.units import latex_number

# Sources that several formulas name.
ZERO = "Rajbhandari et al. 2020 (ZeRO)"
KORTHIKANTI = "Korthikanti et al. 2022"
KAPLAN = "Kaplan et al. 2020"

PARAMETERS = Input("parameters", "Parameters", "N", minimum=1, maximum=1e15)
TOKENS = Input("tokens", "Tokens", "D", "tokens", minimum=1, maximum=1e18)
LAYOUT = Input(
    "layout",
    "State layout",
    "c",
    choices=tuple(LAYOUTS),
    default="zero-16",
    words={name: f"{each.total:g} bytes: {each.title}" for name, each in LAYOUTS.items()},
)
PART = Input("part", "Component", "", choices=("all", "parameters", "gradients", "optimizer"), default="all")
SIZE = Input("size_bytes", "Tensor", "S", "bytes", minimum=0, maximum=1e18)
BYTES_EACH = Input("bytes_each", "Bytes each", "w", minimum=1, maximum=8, default=2.0)

RANKS = Input("ranks", "Ranks", "n", minimum=1, maximum=1e6, integer=True)
SHARDS = Input("ranks", "Data-parallel ranks", "K", minimum=1, maximum=1e6, integer=True)
BANDWIDTH = Input("bytes_per_second", "Bandwidth, one direction", "B", "bytes_per_second", minimum=1, maximum=1e15)
LATENCY = Input("latency_seconds", "Latency per message", r"\alpha", "seconds", minimum=0, maximum=10, default=0.0)
SECONDS = Input("seconds", "Time", "t", "seconds", minimum=1e-9, maximum=1e9)
ACHIEVED = Input("achieved_flops_per_second", "Achieved per GPU", r"\eta F", "flop_per_second", minimum=1, maximum=1e18)

LAYERS = Input("layers", "Layers", "L", minimum=1, maximum=1e5, integer=True)
HIDDEN = Input("hidden", "Hidden size", "h", minimum=1, maximum=1e6, integer=True)
HEADS = Input("heads", "Heads", "a", minimum=1, maximum=1e4, integer=True)
SEQUENCE = Input("sequence", "Sequence length", "s", minimum=1, maximum=1e8, integer=True)
MICRO_BATCH = Input("micro_batch", "Micro-batch", "b", minimum=1, maximum=1e6, integer=True)
TENSOR = Input("tensor", "Tensor-parallel ranks", "t", minimum=1, maximum=1e4, integer=True)
SEQUENCE_PARALLEL = Input("sequence_parallel", "Sequence parallelism", "", choices=("no", "yes"), default="no")
FLASH = Input("flash", "FlashAttention", "", choices=("no", "yes"), default="no")
STAGES = Input("stages", "Stages", "p", minimum=1, maximum=1e5, integer=True)
ACCUMULATION = Input("accumulation", "Micro-steps", "A", minimum=1, maximum=1e5, integer=True, default=1)
MICRO_BATCHES = Input("micro_batches", "Micro-batches", "m", minimum=1, maximum=1e6, integer=True)
PASSES = Input("passes", "Computed for", "", choices=traffic.PASSES, default="training")

Inputs = Mapping[str, Any]


def plain(symbols: str, values: str) -> Latex:
    """LaTeX for a formula without cases: `values` is filled by str.format with LaTeX numbers."""

    def render(inputs: Inputs) -> tuple[str, str]:
        shown = {k: latex_number(v) if isinstance(v, int | float) else v for k, v in inputs.items()}
        return symbols, values.format(**shown)

    return render


def by_case(pick: Callable[[Inputs], tuple[str, str]]) -> Latex:
    """LaTeX for a formula with cases: `pick` answers with the case's symbols and its values, to fill like `plain`."""

    def render(inputs: Inputs) -> tuple[str, str]:
        return plain(*pick(inputs))(inputs)

    return render
