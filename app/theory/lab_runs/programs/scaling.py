"""What theory expects of tiny models trained for a scaling law: their FLOPs, and the rule of thumb for the best size.

No theory knows the losses, or the exponents, of this text and these models beforehand. 20 tokens per parameter is what
Hoffmann et al. 2022 found for models ten thousand times as large, reading words: something to be held against, not a
prediction of what bytes and a few thousand parameters will show.
"""

from __future__ import annotations

from collections.abc import Iterator

from app.theory.compute import attention_flops, training_flops
from app.theory.lab_runs.programs.parts import Expected, Point
from app.theory.scaling_laws import TOKENS_PER_PARAMETER
from app.theory.transformer import parameter_count
from labs.spec import ScalingOptions


def expect(options: ScalingOptions, ranks: int) -> Expected:
    """6ND and attention's own products, for every training and in all."""
    points = tuple(_points(options))
    total = sum(point.y for point in points)
    return Expected(points, {"training_flops": total, "tokens_per_parameter": TOKENS_PER_PARAMETER})


def _points(options: ScalingOptions) -> Iterator[Point]:
    """N is without the table of positions, which nothing is multiplied by (the norms, in N as well, are 2% at most)."""
    for width in sorted(options.widths):
        parameters = parameter_count(options.model(width), sequence=0)
        for budget in sorted(options.token_budgets):
            tokens = options.steps(budget) * options.tokens_per_step
            attention = attention_flops(tokens, options.layers, width, options.sequence)
            yield Point("flops", f"{parameters:,} parameters", tokens, training_flops(parameters, tokens) + attention)
