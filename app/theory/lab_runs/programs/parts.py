"""What theory says of a program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Point:
    """A point of the series `name` in one of the program's figures, in base units."""

    figure: str
    name: str
    x: float
    y: float


@dataclass(frozen=True)
class Expected:
    """Points in the program's figures under the names the program uses, and its quantities."""

    points: tuple[Point, ...] = ()
    quantities: Mapping[str, float] = field(default_factory=dict)
