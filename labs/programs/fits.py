"""Curves through measured points, by least squares. Torch-free.

A power law y = a·x^k is a straight line between the logarithms: log y = log a + k·log x. Its slope is the exponent, and
how far the points are from the line says how well it is known: with residuals r of n points,

    standard error of the slope = √( Σr² / (n−2) / Σ(x − mean x)² )

Two points lie on their line exactly and say nothing of that. Nor does the error contain what all points share: another
seed, another text, or that no loss falls below the text's own entropy, so that in truth no power law holds for long.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import exp, log, nan, sqrt


@dataclass(frozen=True)
class PowerLaw:
    """y = scale · x^exponent. `error` is the exponent's standard error, NaN for two points."""

    scale: float
    exponent: float
    error: float

    def __call__(self, x: float) -> float:
        return float(self.scale * x**self.exponent)

    def __str__(self) -> str:
        return f"{self.scale:.3g} · x^({self.exponent:.3f} ± {self.error:.3f})"


def fit_power_law(x: Sequence[float], y: Sequence[float]) -> PowerLaw:
    """Through at least two points with different x; all positive."""
    across, up = [log(each) for each in x], [log(each) for each in y]
    middle, level = _mean(across), _mean(up)
    spread = sum((each - middle) ** 2 for each in across)
    slope = sum((a - middle) * (u - level) for a, u in zip(across, up, strict=True)) / spread
    left = [u - level - slope * (a - middle) for a, u in zip(across, up, strict=True)]
    freedom = len(left) - 2
    error = sqrt(sum(r * r for r in left) / freedom / spread) if freedom > 0 else nan
    return PowerLaw(exp(level - slope * middle), slope, error)


@dataclass(frozen=True)
class Parabola:
    """y = a + b·(log x − middle) + c·(log x − middle)²: losses at equal compute look like one over log parameters."""

    middle: float
    a: float
    b: float
    c: float

    def __call__(self, x: float) -> float:
        away = log(x) - self.middle
        return self.a + self.b * away + self.c * away * away

    def lowest_within(self, lowest: float, highest: float) -> float | None:
        """The x where y is least; None if that is outside of what was measured, or nowhere."""
        if self.c <= 0:
            return None
        x = exp(self.middle - self.b / (2 * self.c))
        return x if lowest <= x <= highest else None


def fit_parabola(x: Sequence[float], y: Sequence[float]) -> Parabola:
    """Through at least three points with different x. Three lie on it exactly."""
    middle = _mean([log(each) for each in x])
    away = [log(each) - middle for each in x]
    count, (s2, s3, s4) = len(away), (sum(each**power for each in away) for power in (2, 3, 4))
    ty = [sum(each**power * up for each, up in zip(away, y, strict=True)) for power in (0, 1, 2)]
    # the normal equations, with Σ away = 0: [n, 0, s2], [0, s2, s3], [s2, s3, s4] · [a, b, c] = ty
    curve = ty[2] - s2 * ty[0] / count - s3 * ty[1] / s2
    c = curve / (s4 - s2 * s2 / count - s3 * s3 / s2)
    return Parabola(middle, (ty[0] - s2 * c) / count, (ty[1] - s3 * c) / s2, c)


def interpolate(x: Sequence[float], y: Sequence[float], at: float) -> float:
    """y at `at` on the power laws from point to point; x rises, and `at` is among it."""
    for (left, low), (right, high) in pairwise(zip(x, y, strict=True)):
        if left <= at <= right:
            return float(low * (high / low) ** (log(at / left) / log(right / left)))
    raise ValueError(f"{at} is not between {x[0]} and {x[-1]}")


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
