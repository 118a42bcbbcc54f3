"""A field of a spec that a sweep turns, and its values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

STRATEGY, DATA = "parallel.zero", "parallel.data"

Value = int | float | str | bool | list[Any]


@dataclass(frozen=True)
class Knob:
    """A field of the spec, and what it is turned to."""

    field: str
    values: tuple[Value, ...]

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Knob:
        return cls(record["field"], tuple(record["values"]))


def is_number(value: object) -> bool:
    """Whether a value can stand on an axis."""
    return isinstance(value, int | float) and not isinstance(value, bool)
