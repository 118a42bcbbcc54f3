"""The quantities of a run that can be predicted, and how their values are written."""

from __future__ import annotations

from collections.abc import Mapping

from app.theory.units import bytes_text, count_text, digits, scaled
from labs.spec import Quantity, RunSpec

_OF_TRAINING: Mapping[str, Quantity] = {
    "model_state_bytes": Quantity("Model state per rank", "bytes"),
    "payload_bytes_per_step": Quantity("Payload per rank and step", "bytes"),
}
SECONDS = (("h", 3600.0), ("s", 1.0), ("ms", 1e-3), ("µs", 1e-6))  # units and their size, the largest first


def quantities_of(spec: RunSpec) -> Mapping[str, Quantity]:
    """What a run of `spec` ends with that can be predicted, by name."""
    return _OF_TRAINING if spec.options is None else spec.options.quantities


def value_text(value: float, dimension: str) -> str:
    """A value in base units, in the unit that suits its size: 29.7 MB, 3.2 ms, 27.3 %."""
    if dimension == "bytes":
        return bytes_text(value, 4)
    if dimension == "fraction":
        return scaled(value, "%")
    if dimension == "seconds":
        return scaled(value, next((unit for unit, size in SECONDS if abs(value) >= size), SECONDS[-1][0]))
    if dimension == "bytes_per_second":
        return f"{bytes_text(value, 4)}/s"
    if dimension in ("count", "flop"):
        return count_text(value, 4) if abs(value) >= 1 else digits(value)
    return digits(value)
