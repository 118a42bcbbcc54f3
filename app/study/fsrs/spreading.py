"""On which day of several that are as good a card comes back: seeded fuzz, then the day with the least to do. Pure.

The range is that of FSRS as py-fsrs ships it. Within it the card's own seed picks a day, the same whenever it is asked
for, so that cards learned together come apart; then the quietest of the days next to that pick is taken.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256

SHORTEST_FUZZED_DAYS = 3
NEIGHBOUR_DAYS = 3
LONGEST_DAYS = 36500
_FACTORS = ((2.5, 7.0, 0.15), (7.0, 20.0, 0.10), (20.0, float("inf"), 0.05))


def fuzz_range(days: int) -> tuple[int, int]:
    """The fewest and most days that may be chosen instead of `days`."""
    if days < SHORTEST_FUZZED_DAYS:
        return days, days
    delta = 1.0 + sum(factor * max(min(float(days), end) - start, 0.0) for start, end, factor in _FACTORS)
    high = min(round(days + delta), LONGEST_DAYS)
    return min(max(2, round(days - delta)), high), high


def seed(card_id: str, repetition: int) -> tuple[float, int]:
    """A fraction in [0, 1) to fuzz with, and a 31-bit number to order by, both of this repetition of this card."""
    digest = sha256(f"{card_id}:{repetition}".encode()).digest()
    return int.from_bytes(digest[:6]) / 2**48, int.from_bytes(digest[8:12]) >> 1


def candidates(days: int, fraction: float) -> tuple[int, range]:
    """The day the fuzz picks, and the days next to it that may be taken instead."""
    low, high = fuzz_range(days)
    pick = low + int(fraction * (high - low + 1))
    return pick, range(max(low, pick - NEIGHBOUR_DAYS), min(high, pick + NEIGHBOUR_DAYS) + 1)


def choose(days: int, fraction: float, load: Mapping[int, int], at_least: int = 0) -> int:
    """The candidate with the fewest cards due (`load`, by days from today); among equals the nearest to the pick."""
    pick, around = candidates(days, fraction)
    return min((day for day in around if day >= at_least), key=lambda day: (load.get(day, 0), abs(day - pick), day))
