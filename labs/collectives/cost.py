"""The α-β model: a message of S bytes takes α + S/B, whoever sends it to whom.

α, the latency, is what the smallest message takes; B, the bandwidth, is what a large one comes close to. Two ranks that
throw a message to and fro (ping-pong) show both. The model knows nothing of the time it takes to add up, nor of links
and cores that ranks share. On one machine all of them do: collectives take longer there than it says.

Hockney 1994, "The communication challenge for MPP: Intel Paragon and Meiko CS-2". Torch-free.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf


@dataclass(frozen=True)
class Cost:
    """A link by its latency α and its bandwidth B in one direction."""

    latency_seconds: float
    bytes_per_second: float

    def message_seconds(self, size_bytes: float) -> float:
        return self.latency_seconds + size_bytes / self.bytes_per_second

    def ring_seconds(self, size_bytes: float, ranks: int) -> float:
        """Of a ring's all-reduce: 2(n−1) steps, in each of which every rank sends one n-th."""
        return 2 * (ranks - 1) * self.message_seconds(size_bytes / ranks)

    def tree_seconds(self, size_bytes: float, ranks: int) -> float:
        """Of a binomial tree's all-reduce: ⌈log2 n⌉ rounds up and as many down, each of the whole tensor."""
        return 2 * (ranks - 1).bit_length() * self.message_seconds(size_bytes)

    def ring_wins_from_bytes(self, ranks: int) -> float:
        """The size from which the ring is faster than the tree: where α times the steps it has more of is made up for
        by the bytes it sends less of. 0 up to three ranks, which have no more steps in a ring than in a tree."""
        rounds = (ranks - 1).bit_length()
        more_steps, fewer_sizes = ranks - 1 - rounds, rounds - (ranks - 1) / ranks
        return more_steps * self.latency_seconds * self.bytes_per_second / fewer_sizes


def fit_cost(sizes_bytes: Sequence[float], seconds: Sequence[float]) -> Cost:
    """α and B from the times of messages of at least two sizes, by least squares of the *relative* errors.

    Of the absolute ones the largest messages, which take a thousand times as long, would decide alone, and α would be
    lost in their noise. No α below 0 comes out, and B is infinite where larger messages took no longer.
    """
    inverse = [1 / each for each in seconds]  # u, and v = S/t below: minimise the sum of (α·u + v/B − 1)²
    scaled = [size / each for size, each in zip(sizes_bytes, seconds, strict=True)]
    uu, vv = sum(u * u for u in inverse), sum(v * v for v in scaled)
    uv = sum(u * v for u, v in zip(inverse, scaled, strict=True))
    determinant = uu * vv - uv * uv
    latency = (sum(inverse) * vv - sum(scaled) * uv) / determinant
    seconds_per_byte = (sum(scaled) * uu - sum(inverse) * uv) / determinant
    if latency < 0:
        latency, seconds_per_byte = 0.0, sum(scaled) / vv
    if seconds_per_byte <= 0:
        latency, seconds_per_byte = sum(inverse) / uu, 0.0
    return Cost(latency, 1 / seconds_per_byte if seconds_per_byte else inf)
