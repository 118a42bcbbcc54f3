"""What the `autograd` program should measure, where it can be known: ratios and bytes."""

from __future__ import annotations

from collections.abc import Iterator

from app.theory.lab_runs.programs.parts import Expected, Point
from labs.spec import AutogradOptions

_LAYERS = 3
_FP32_BYTES = 4
_USES_OF_A_TIED_TABLE = 2  # as embedding and as output matrix


def expect(options: AutogradOptions, _ranks: int) -> Expected:
    """Backward adds; forgetting the division makes a gradient as many times too long as there are pieces (F40)."""
    quantities = {
        "undivided_ratio": options.pieces,
        "kept_ratio": options.passes,
        "freed_bytes": _FP32_BYTES * _LAYERS * options.width**2,
        "tied_contributions": _USES_OF_A_TIED_TABLE,
        "token_ratio": max(options.token_counts) / min(options.token_counts),
    }
    return Expected(tuple(_points(options)), quantities)


def _points(options: AutogradOptions) -> Iterator[Point]:
    for number in range(1, options.passes + 1):
        yield Point("kept", "kept", number, number)
        yield Point("kept", "set to None before each", number, 1)
    for parts in options.ways_to_cut:
        yield Point("undivided", "not divided", parts, parts)
        yield Point("undivided", "divided", parts, 1)
    tokens, pieces = sum(options.token_counts), len(options.token_counts)
    for count in options.token_counts:
        # in the mean of means a token is one of its piece's, and its piece one of all
        yield Point("unequal", "mean of means", count, tokens / (pieces * count))
        yield Point("unequal", "divided by all tokens", count, 1)
