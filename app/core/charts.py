"""The scale of a bar chart: a round maximum, and ticks whose text keeps its size at every width."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import ceil, floor, log10

from app.units import step_for


@dataclass(frozen=True)
class Tick:
    """A label on the axis. Optional ones go on a phone."""

    percent: str
    text: str
    optional: bool


@dataclass(frozen=True)
class Scale:
    """A linear axis from 0 to `maximum`, both in base units."""

    maximum: float
    ticks: tuple[Tick, ...]

    def percent(self, value: float) -> str:
        """Where `value` stands, in percent of the axis."""
        return f"{100 * value / self.maximum:.2f}"

    def stack(self, parts: Mapping[str, float], order: Iterable[str]) -> tuple[tuple[str, str], ...]:
        """The parts that are not zero, in that order, each with its width in percent of the axis."""
        return tuple((part, self.percent(parts[part])) for part in order if parts.get(part))

    def places(self, marks: Iterable[tuple[str, float]]) -> tuple[tuple[str, str], ...]:
        """Where marks stand, in percent of the axis, by kind; one beyond the axis stands at its end."""
        return tuple((kind, self.percent(min(value, self.maximum))) for kind, value in marks)


PERCENT_TICKS = tuple(
    Tick(f"{each}", f"{each}{' %' if each == 100 else ''}", each in (25, 75)) for each in (0, 25, 50, 75, 100)
)


def byte_scale(values: Iterable[float]) -> Scale:
    """An axis for bytes that holds every value, with four to seven round ticks in one unit."""
    largest = max(values, default=0.0)
    if largest <= 0:
        largest = 1.0
    step = step_for(largest, "bytes")
    scale = round_scale(largest / step.size, step.unit)
    return Scale(scale.maximum * step.size, scale.ticks)


def round_scale(largest: float, unit: str) -> Scale:
    """An axis in one unit from 0 to `largest` or a little more, with four to seven round ticks."""
    step = _round_step(largest if largest > 0 else 1.0)
    count = ceil((largest if largest > 0 else 1.0) / step - 1e-9)
    said = [f"{step * i:,.6g}" for i in range(count + 1)]
    said[-1] += f" {unit}" if unit else ""
    ticks = tuple(Tick(f"{100 * i / count:.2f}", text, _may_go(i, count)) for i, text in enumerate(said))
    return Scale(step * count, ticks)


def _may_go(index: int, count: int) -> bool:
    """Every other tick; and the one before the last, whose text carries the unit and needs the room."""
    return index == count - 1 or (index % 2 == 1 and index != count)


def _round_step(largest: float) -> float:
    """1, 2 or 5 times a power of ten, such that four to seven of them reach `largest`."""
    rough = largest / 6
    power = 10.0 ** floor(log10(rough))
    return next((m * power for m in (1, 2, 5, 10) if m * power >= rough), 10 * power)
