"""What every program's options are made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from labs.spec.vocabulary import Strict
from labs.violations import Violation


@dataclass(frozen=True)
class Figure:
    """Something a program measures over something else. Values are in base units; an empty unit is a plain number.
    A series whose name has a word of `fitted` in it is no measurement but a law that was fitted to one; where it is
    `affine` it grows by as much with every unit of x, which logarithmic axes show as a curve."""

    title: str
    x: str
    y: str
    x_unit: str = ""
    y_unit: str = ""
    x_log: bool = False
    y_log: bool = False
    fitted: tuple[str, ...] = ()
    is_affine: bool = False

    def law_of(self, series: str) -> str:
        """The series that a law is of, as `ring` for `ring by α and B`; empty of what has no name of its own in it."""
        return series.partition(" by ")[0] if self.is_fitted(series) and " by " in series else ""

    def is_fitted(self, series: str) -> bool:
        """Whether a series is a law's, and not measured."""
        return any(word in series for word in self.fitted)


@dataclass(frozen=True)
class Quantity:
    """A number a program ends with, which can be predicted. `dimension`: bytes, seconds, fraction, count, ..."""

    title: str
    dimension: str


class Options(Strict):
    """What a program takes. A subclass names its ranks' axis of `parallel`, its figures and its quantities."""

    title: ClassVar[str]
    about: ClassVar[str]
    axis: ClassVar[Literal["data", "pipeline"] | None] = None  # along which it may have several ranks
    fewest_ranks: ClassVar[int] = 1
    may_span_hosts: ClassVar[bool] = False
    figures: ClassVar[Mapping[str, Figure]]
    quantities: ClassVar[Mapping[str, Quantity]] = {}

    program: str

    def check(self, ranks: int) -> Iterator[Violation]:
        """What is impossible between the options, on so many ranks. Fields are named below `options`."""
        yield from ()


def repeated(field: str, values: Sequence[Any]) -> Iterator[Violation]:
    """What is in an option's list more than once, where it would only be measured twice."""
    for index, value in enumerate(values):
        if value in values[:index]:
            yield Violation(f"options.{field}.{index}", value, f"{value} is there twice.", "each value once")
