"""What a rank held from moment to moment of one step, and for how long it held what a collective filled or sent.

The tracker (labs.probes.memory) says of every change what is held after it. A step of a small model has some ten
thousand of them; what is reported is thinned until it fits a line of events, and says by how much.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from labs.spec.events import Component

MOST_POINTS = 240
_FINEST_SHARE = 0.005  # of the peak: smaller changes are not to be seen


@dataclass(slots=True)
class Life:
    """One storage in the watched step; Unix times in seconds. Without an end it was still there when the step ended."""

    component: Component
    bytes: int
    start: float
    end: float | None = None


@dataclass(frozen=True)
class Thinned:
    """Moments and what was held from each of them on, in the order of the components it was written in. No change of
    `finest_bytes` or more of any component is missing."""

    at: list[float]
    held: list[tuple[int, ...]]
    finest_bytes: int


class History:
    """Grows while a step is watched. Times are Unix times in seconds, which the ranks of one machine share."""

    def __init__(self) -> None:
        self.points: list[tuple[float, tuple[int, ...]]] = []

    def note(self, held: tuple[int, ...]) -> None:
        self.points.append((time.time(), held))

    def thinned(self) -> Thinned:
        """At most `MOST_POINTS`, the largest total among them."""
        if not self.points:
            return Thinned([], [], 0)
        peak = max(range(len(self.points)), key=lambda index: sum(self.points[index][1]))
        finest = max(1, round(_FINEST_SHARE * sum(self.points[peak][1])))
        while (kept := _kept(self.points, finest, peak)) is None:
            finest = round(finest * 1.3) + 1
        return Thinned([self.points[i][0] for i in kept], [self.points[i][1] for i in kept], finest)


def _kept(points: Sequence[tuple[float, tuple[int, ...]]], finest: int, peak: int) -> list[int] | None:
    """The first, the last, the `peak`, and each that differs by `finest` or more from the one kept before it; None as
    soon as these are more than `MOST_POINTS`."""
    kept = [0]
    before, last = points[0][1], len(points) - 1
    for index, (_, held) in enumerate(points):
        for now, then in zip(held, before, strict=True):  # written out: it is done for every change of every step
            if now - then >= finest or then - now >= finest:
                break
        else:
            if index != peak:
                continue
        before = held
        if index:
            kept.append(index)
            if len(kept) > MOST_POINTS:
                return None
    if kept[-1] != last:
        kept.append(last)
    return kept if len(kept) <= MOST_POINTS else None
