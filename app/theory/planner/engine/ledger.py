"""One account of what hides behind what: a link carries one collective at a time, and a second of compute hides a
collective of each link once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Pass = Literal["forward", "backward"]


@dataclass
class Ledger:
    """The compute of one micro-batch, in seconds by pass, and what of it already has a collective beside it.

    `contention` is the share of hidden time that compute loses to the collective beside it.
    """

    forward: float
    backward: float
    contention: float
    _taken: dict[tuple[str, str], float] = field(default_factory=dict)
    _taken_once: dict[tuple[str, str], float] = field(default_factory=dict)

    def every(self, way: Pass, link: str, seconds: float, window: float | None = None) -> float:
        """What shows of a collective of every micro-batch that runs beside at most `window` seconds of its pass."""
        whole, key = self._whole(way), (way, link)
        free = whole - self._taken.get(key, 0.0)
        hidden = max(0.0, min(seconds, free, whole if window is None else window))
        self._taken[key] = self._taken.get(key, 0.0) + hidden
        return seconds - hidden * (1.0 - self.contention)

    def once(self, way: Pass, link: str, seconds: float, passes: float = 1.0) -> float:
        """What shows of a collective that runs once a step, beside `passes` passes of one micro-batch."""
        key = (way, link)
        free = passes * (self._whole(way) - self._taken.get(key, 0.0)) - self._taken_once.get(key, 0.0)
        hidden = max(0.0, min(seconds, free))
        self._taken_once[key] = self._taken_once.get(key, 0.0) + hidden
        return seconds - hidden * (1.0 - self.contention)

    def _whole(self, way: Pass) -> float:
        return self.forward if way == "forward" else self.backward
