"""How fast this machine multiplies matrices, and what slicing costs.

A product of (m × k) and (k × n) takes 2mnk FLOPs and touches mk + kn + mn values. Large ones are limited by arithmetic,
small and thin ones by memory and by the cost of starting them. Tensor parallelism cuts an MLP's first layer by columns:
each of t ranks has 1/t of the FLOPs, but the slice is thinner, so it takes more than 1/t of the time.

Williams, Waterman, Patterson 2009, "Roofline: an insightful visual performance model". Shoeybi et al. 2019,
"Megatron-LM", section 3.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch

from labs.programs.running import DTYPES, Bench
from labs.spec.programs import GemmOptions

_LEAST_FLOPS, _MOST_REPEATS = 1e9, 200  # a small product is over before it can be timed once


def measure(options: GemmOptions, bench: Bench) -> dict[str, float]:
    """Rates in FLOP/s: squares by side, and one slice of an MLP's first layer by the number of slices. What a run ends
    with is of the first type."""
    found: dict[str, float] = {}
    for dtype in options.dtypes:
        squares = {side: _rate(bench, options, dtype, side, side, side) for side in options.sides}
        sliced = {slices: _sliced_rate(bench, options, dtype, slices) for slices in options.slices}
        for figure, rates in (("rate", squares), ("sliced", sliced)):
            for x, rate in rates.items():
                bench.point(figure, dtype, x, rate)
        found = found or _quantities(squares, sliced)
    return found


def _quantities(squares: Mapping[int, float], sliced: Mapping[int, float]) -> dict[str, float]:
    best = max(squares.values())
    found = {"best_flops_per_second": best, "small_share": squares[min(squares)] / best}
    return found | ({"slice_share": sliced[max(sliced)] / sliced[min(sliced)]} if sliced else {})


def _sliced_rate(bench: Bench, options: GemmOptions, dtype: str, slices: int) -> float:
    return _rate(bench, options, dtype, options.tokens, options.hidden, 4 * options.hidden // slices)


def _rate(bench: Bench, options: GemmOptions, dtype: str, m: int, k: int, n: int) -> float:
    """FLOP/s of a product (m × k) by (k × n)."""
    left = torch.randn(m, k, device=bench.device).to(DTYPES[dtype])
    right = torch.randn(k, n, device=bench.device).to(DTYPES[dtype])
    out = torch.empty(m, n, device=bench.device, dtype=DTYPES[dtype])
    flops = 2.0 * m * n * k
    repeats = max(options.repeats, min(_MOST_REPEATS, int(_LEAST_FLOPS / flops)))
    return flops / bench.seconds(lambda: torch.mm(left, right, out=out), repeats)
