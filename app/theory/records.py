"""A record of dataclasses as JSON data, for whoever sends it, stores it or shows it as it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any


def json_data(value: Any) -> Any:
    """`value` with dataclasses as objects, by the names and in the order of their fields, and tuples as arrays."""
    if is_dataclass(value):
        return {field.name: json_data(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {name: json_data(inner) for name, inner in value.items()}
    if isinstance(value, tuple | list):
        return [json_data(inner) for inner in value]
    return value
