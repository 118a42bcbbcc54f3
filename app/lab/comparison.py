"""Prediction, theory and measurement of a run's quantities, side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.lab.records import Prediction
from app.reveal.comparison import Comparison
from labs.spec import Quantity


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
