"""What a rank held over a step, drawn: a shape for every component, and the outline of what a collective filled."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise

from markupsafe import Markup

from app.content.diagrams.svg import number
from app.content.film.axis import Axis, path
from app.content.film.shown import COMPONENTS
from app.core.charts import Scale
from app.lab.film.pieces import Piece, Step
from app.lab.film.words import milliseconds
from app.units import bytes_text
from labs.spec.events import Component


class Memory:
    """What a rank held over the step, stacked; y runs from 100 at nothing to 0 at the scale's end."""

    def __init__(
        self, at: Sequence[float], held: Sequence[tuple[int, ...]], step: Step, axis: Axis, scale: Scale
    ) -> None:
        self._at, self._held, self._step, self.axis, self._scale = at, held, step, axis, scale

    def change(self, start: float, end: float) -> dict[str, tuple[int, int]]:
        """Bytes of each component at two moments."""
        if not self._at:
            return {}
        before, after = self._at_moment(start), self._at_moment(end)
        return {name: (before[index], after[index]) for index, name in enumerate(COMPONENTS)}

    def _at_moment(self, seconds: float) -> tuple[int, ...]:
        return self._held[max(0, bisect_right(self._at, seconds) - 1)]

    def drawn(self) -> Markup:
        """A shape for every component, from the first at the bottom up."""
        return Markup("").join(path(name, self._shape(index)) for index, name in enumerate(COMPONENTS))

    def _shape(self, index: int) -> str:
        if not self._at or not any(held[index] for held in self._held):
            return ""
        below = [sum(held[:index]) for held in self._held]
        return self._outline(
            self._at, [*below], [low + held[index] for low, held in zip(below, self._held, strict=True)]
        )

    def _outline(
        self, at: Sequence[float], low: Sequence[float], high: Sequence[float], end: float | None = None
    ) -> str:
        """Along the top edge from the left, and back along the bottom."""
        stops = [*at[1:], self._step.seconds if end is None else end]
        top = f"M{self.axis.x(at[0])} {self._y(high[0])}"
        for before, level, stop in zip([None, *high], high, stops, strict=False):
            top += ("" if level == before else f"V{self._y(level)}") + f"H{self.axis.x(stop)}"
        back = ""
        for level, start in zip(reversed(low), reversed(at), strict=True):
            back += f"V{self._y(level)}H{self.axis.x(start)}"
        return f"{top}{back}z"

    def _y(self, size: float) -> str:
        return number(100 - 100 * size / self._scale.maximum)

    def bump(self, piece: Piece) -> str:
        """The outline of what a collective filled or sent from, at the foot of its component; empty where nobody
        followed it, or it is there all the time."""
        if piece.moved is None or not self._at:
            return ""
        by_component: dict[Component, list[tuple[float, float, int]]] = {}
        for each in piece.moved.held:
            start = each.start - self._step.since
            end = self._step.seconds if each.end is None else each.end - self._step.since
            by_component.setdefault(each.component, []).append((start, end, each.bytes))
        return "".join(self._foot(name, lives) for name, lives in by_component.items())

    def _foot(self, name: Component, lives: Sequence[tuple[float, float, int]]) -> str:
        index = COMPONENTS.index(name)
        begin, end = min(start for start, _, _ in lives), max(end for _, end, _ in lives)
        edges = {begin, end, *(edge for start, stop, _ in lives for edge in (start, stop))}
        edges |= {at for at in self._at if begin < at < end}
        d, run = "", list[tuple[float, float, float, float]]()
        for start, stop in pairwise(sorted(edges)):
            size = sum(bytes_ for a, b, bytes_ in lives if a <= start and stop <= b)
            held = self._at_moment(start)
            low = float(sum(held[:index]))
            if size:
                run.append((start, stop, low, low + size))
            elif run:
                d, run = d + self._closed(run), []
        return d + (self._closed(run) if run else "")

    def _closed(self, run: Sequence[tuple[float, float, float, float]]) -> str:
        at, low, high = [r[0] for r in run], [r[2] for r in run], [r[3] for r in run]
        return self._outline(at, low, high, run[-1][1])

    def says(self, rank: int) -> str:
        """The peak, in a sentence."""
        if not self._at:
            return ""
        totals = [sum(held) for held in self._held]
        peak = max(range(len(totals)), key=lambda index: totals[index])
        state = sum(self._held[0][:3])
        return (
            f"Live memory of rank {rank} over the step: model state {bytes_text(state)} at its beginning, at most "
            f"{bytes_text(totals[peak])} in all, {milliseconds(max(0.0, self._at[peak]))} into it."
        )
