"""The fitted constants of the time model: these five, and no other anywhere. Memory and traffic have none.

What profiles say is read from sources, with one exception, named in its record and on the page: that ZeRO-3 of 2021
gathers through one network card a rank was learned from the rows it is compared with. Attention kernels have rates of
their own, printed by their papers (`attention`), and fp8 casts a count of bytes: neither is fitted.

Each stands for what a first-principles count cannot know. They are fitted together to the published step times and
throughputs that `/reference/validation` lists, by `python -m tests.support.fit_constants`, which also fits them without
each source in turn; that page shows how well each source is predicted by constants that never saw it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Constants:
    """Fitted together. Shares are of what a data sheet promises."""

    matmul_efficiency: float
    joules_per_flop: float
    memory_efficiency: float
    network_efficiency: float
    contention: float


MEANINGS: Mapping[str, str] = {
    "matmul_efficiency": "Share of the dense peak a large matrix product reaches while the clock holds: issue slots, "
    "shared-memory traffic, scheduling.",
    "joules_per_flop": "Energy of a 16-bit FLOP at the clock the peak is quoted for. Where the power limit is below "
    "what the peak would draw, the clock falls.",
    "memory_efficiency": "Share of the memory bandwidth that streaming kernels reach.",
    "network_efficiency": "Share of a link's bandwidth that a collective reaches on the slowest link it crosses.",
    "contention": "Share of a hidden collective's time that the compute beside it loses: the compute units and the "
    "memory traffic the collective takes.",
}

FITTED = Constants(
    matmul_efficiency=0.771,
    joules_per_flop=1.46e-12,
    memory_efficiency=0.775,
    network_efficiency=0.85,
    contention=0.287,
)
