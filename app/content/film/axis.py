"""The one axis of time under all that is drawn of a step, in per mille of it, and the two shapes that stand on it."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from app.content.diagrams.svg import number

WIDTH = 1000.0


@dataclass(frozen=True)
class Axis:
    """From the step's beginning to `end`, in seconds; what is beyond stands at its edge."""

    end: float

    def x(self, seconds: float) -> str:
        return number(WIDTH * min(max(seconds, 0.0), self.end) / self.end)

    def percent(self, seconds: float) -> str:
        return number(100 * min(max(seconds, 0.0), self.end) / self.end)


def path(kind: str, d: str) -> Markup:
    return Markup('<path class="{}" d="{}"/>').format(kind, d) if d else Markup("")


def box(axis: Axis, start: float, end: float, edges: tuple[float, float]) -> str:
    top, bottom = edges
    return f"M{axis.x(start)} {top:g}H{axis.x(end)}V{bottom:g}H{axis.x(start)}z"
