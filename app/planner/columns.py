"""A column of quantities in one unit and with as many decimals in every row, so that it can be compared at a glance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor, log10

from app.theory.planner import CollectiveEstimate
from app.units import LADDERS, SCALES, digits

_SIGNIFICANT = 3
_BYTES = tuple(step.unit for step in LADDERS["bytes"])
_UP_TO_GB = _BYTES[_BYTES.index("GB") :]  # what a GPU holds is told in GB, however much it would be
_SECONDS = ("s", "ms", "µs")


@dataclass(frozen=True)
class Column:
    """The unit for the column's head, and the number of each row."""

    unit: str
    texts: tuple[str, ...]


def bytes_column(values: Sequence[float]) -> Column:
    """Bytes in the unit that suits the largest."""
    return _column(values, _BYTES)


def seconds_column(values: Sequence[float]) -> Column:
    """Seconds in the unit that suits the longest; a step's parts are never so long that minutes would."""
    return _column(values, _SECONDS)


def texts_in_one_unit(values: Sequence[float], dimension: str) -> tuple[str, ...]:
    """Each value with its unit, all in the one that suits the largest, to four significant digits: for cells that are
    read, and derived, one by one."""
    unit = _unit(values, _UP_TO_GB if dimension == "bytes" else _SECONDS)
    return tuple(f"{digits(float(f'{value / SCALES[unit][1]:.4g}'))} {unit}" for value in values)


def _unit(values: Sequence[float], units: Sequence[str]) -> str:
    largest = max((abs(value) for value in values), default=0.0)
    return next((each for each in units if largest >= SCALES[each][1]), units[-1])


def _column(values: Sequence[float], units: Sequence[str]) -> Column:
    largest = max((abs(value) for value in values), default=0.0)
    unit = _unit(values, units)
    scaled = [value / SCALES[unit][1] for value in values]
    top = largest / SCALES[unit][1]
    decimals = max(0, _SIGNIFICANT - 1 - floor(log10(top))) if top > 0 else 0
    return Column(unit, tuple(_text(value, decimals) for value in scaled))


def _text(value: float, decimals: int) -> str:
    """0 is 0; what rounds to it without being it says so."""
    if value and round(abs(value), decimals) == 0:
        return f"< {10**-decimals:.{decimals}f}"
    return f"{value:,.{decimals}f}" if value else "0"


@dataclass(frozen=True)
class Communication:
    """The table of what a GPU sends in a step: a row for each use of a link, its quantities one unit a column."""

    rows: tuple[CollectiveEstimate, ...]
    wire: Column
    time: Column
    exposed: Column


def communication_table(rows: Sequence[CollectiveEstimate]) -> Communication:
    """From the communication of an Estimate. Time and what of it is not hidden share a unit."""
    wire = bytes_column([row.wire_bytes_per_rank_per_step for row in rows])
    both = seconds_column([seconds or 0.0 for row in rows for seconds in (row.seconds, row.exposed_seconds)])
    return Communication(tuple(rows), wire, Column(both.unit, both.texts[::2]), Column(both.unit, both.texts[1::2]))
