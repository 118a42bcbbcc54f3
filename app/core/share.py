"""A share of results, and how sure it is."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

NINETY_FIVE_PERCENT, EIGHTY_PERCENT = 1.96, 1.2816  # two-sided quantiles of the standard normal distribution


@dataclass(frozen=True)
class Share:
    """So many of so many."""

    right: int
    count: int

    @property
    def value(self) -> float:
        """0..1; 0 where nothing was counted."""
        return self.right / self.count if self.count else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval."""
        return self.wilson(NINETY_FIVE_PERCENT)

    def wilson(self, quantile: float) -> tuple[float, float]:
        """Wilson's score interval (Wilson 1927) at a quantile of the normal distribution, both ends 0..1."""
        if not self.count:
            return 0.0, 1.0
        z, n, p = quantile, self.count, self.value
        middle = (p + z * z / (2 * n)) / (1 + z * z / n)
        half = z * sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
        return max(0.0, middle - half), min(1.0, middle + half)
