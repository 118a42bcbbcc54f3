"""Prediction, theory and measurement of a run's quantities, side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import log
from typing import Any

from app.lab.quantities import is_right, value_text
from app.lab.records import Prediction
from labs.spec import Quantity

_NEAR = 1.02  # as near as that nothing is missing from a prediction


@dataclass(frozen=True)
class Comparison:
    """One quantity: what was predicted, what theory says, what was measured. Positions are percent of a log axis."""

    title: str
    dimension: str
    text: str | None
    predicted: float | None
    theory: float | None
    measured: float | None
    within: float | None
    name: str = ""

    @property
    def off_by(self) -> float | None:
        """The ratio between prediction and measurement, 1 or more."""
        if self.predicted is not None and self.predicted == self.measured:
            return 1.0  # both may be zero
        if not self.predicted or not self.measured:
            return None
        return max(self.predicted / self.measured, self.measured / self.predicted)

    def said(self, value: float | None) -> str:
        return "–" if value is None else value_text(value, self.dimension)

    @property
    def verdict(self) -> str:
        if self.off_by is None:
            return "not predicted" if self.predicted is None else "–"
        if self.off_by < 1.005:
            return "exact"
        return f"{self.off_by:.2f} ×" if self.off_by < 100 else "over 100 ×"

    @property
    def is_near(self) -> bool:
        """Whether there is no gap to speak of between prediction and measurement."""
        return self.off_by is not None and self.off_by < _NEAR

    @property
    def missed(self) -> bool:
        """Whether what was predicted was not what came out, near enough."""
        if self.predicted is None or self.measured is None:
            return False
        return not is_right(self.predicted, self.measured, self.dimension)

    @property
    def kept_confidence(self) -> bool | None:
        """Whether the measurement lies within what the learner was sure of."""
        if self.within is None or self.off_by is None:
            return None
        return self.off_by <= self.within

    def at(self, value: float | None) -> str | None:
        """Where `value` stands on an axis from a quarter to four times the measurement (or theory)."""
        base = self.measured or self.theory
        if not value or not base:
            return None
        return f"{min(98.0, max(2.0, 50 + 50 * log(value / base) / log(4))):.2f}"


def compare(
    quantities: Mapping[str, Quantity],
    prediction: Mapping[str, Any] | None,
    theory: Mapping[str, Any],
    result: Mapping[str, Any] | None,
) -> list[Comparison]:
    """Prediction, theory and measurement of each of `quantities`."""
    rows = []
    for name, quantity in quantities.items():
        locked = (prediction or {}).get(name)
        said = Prediction.from_json(locked) if locked else None
        rows.append(
            Comparison(
                quantity.title,
                quantity.dimension,
                said.text if said else None,
                said.value if said else None,
                theory.get(name),
                (result or {}).get(name),
                said.within if said else None,
                name,
            )
        )
    return rows
