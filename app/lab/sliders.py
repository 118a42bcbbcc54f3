"""The slider a quantity is predicted with, whatever it is measured in: its range, its ticks, its anchor, its units."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from app.content.live import Expressions
from app.content.markdown import render_plain
from app.content.schemas import Quantity
from app.core.charts import Scale, round_scale
from app.units import DIMENSIONS, LADDERS, UNITS, step_for, value_text

_STEPS = 1000  # of a slider for what is not counted
_ROUND = (1, 1.5, 2, 3, 5, 8, 10)  # times a power of ten, where ranges end


@dataclass(frozen=True)
class Slider:
    """A range from 0 to `maximum`, in base units, and a mark in it. Neither may be the answer."""

    maximum: float
    anchor: float
    anchor_text: str
    scale: Scale
    steps: int  # that it is divided into
    units: str  # as JSON: the units that are written, and those that are read, each with its size

    @property
    def anchor_fraction(self) -> float:
        return self.anchor / self.maximum


def make_slider(quantity: Quantity, dimension: str, values: Mapping[str, Any]) -> Slider:
    """The slider of `quantity` for a run of which `values` is known. Raises ExpressionError."""
    known = Expressions(values)
    most, anchor = known.number(quantity.most), float(known.number(quantity.anchor.value))
    step = step_for(most, dimension)
    unit, size = step.unit, step.size
    scale = round_scale(rounded_up(most / size), unit)
    maximum = scale.maximum * size
    says = f"{render_plain(quantity.anchor.says, Expressions(values))}, {value_text(anchor, dimension)}"
    steps = int(maximum) if dimension == "count" and maximum <= _STEPS else _STEPS
    return Slider(maximum, anchor, says, scale, steps, _units(dimension))


def rounded_up(value: float) -> float:
    """The next 1, 1.5, 2, 3, 5 or 8 times a power of ten: ends of a scale with round ticks."""
    if value <= 0:
        return 1.0
    power = 10.0 ** (int(f"{value:e}".partition("e")[2]))
    return next(each * power for each in _ROUND if each * power >= value * (1 - 1e-12))


def _units(dimension: str) -> str:
    """For the page's script, which writes what the slider says and follows what is typed."""
    read = {name: unit.factor for name, unit in UNITS.items() if unit.dimension == DIMENSIONS[dimension]}
    ladder = LADDERS[dimension]
    read |= {step.unit: step.size for step in ladder}  # a rate is read as one unit over another: not in the table
    if dimension in ("count", "fraction"):
        read[""] = 1.0
    write = [[step.unit, step.size, step.least] for step in ladder]
    return json.dumps({"write": write, "read": read}, ensure_ascii=False, separators=(",", ":"))
