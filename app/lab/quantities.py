"""The quantities of a run that can be predicted, how their values are written, and how near a prediction must come."""

from __future__ import annotations

from collections.abc import Mapping

from app.units import bytes_text, count_text, digits, scaled, step_for
from labs.spec import PROGRAMS, Quantity, RunSpec

_OF_TRAINING: Mapping[str, Quantity] = {
    "model_state_bytes": Quantity("Model state per rank", "bytes"),
    "optimizer_bytes": Quantity("Optimizer state per rank", "bytes"),
    "payload_bytes_per_step": Quantity("Payload per rank and step", "bytes"),
    "wire_bytes_per_step": Quantity("Sent per rank and step, around rings", "bytes"),
    "activation_bytes": Quantity("Activations at their largest", "bytes"),
    "step_seconds": Quantity("Duration of a step", "seconds"),
}
# A prediction this near to the measurement, as a factor, was right. What is counted can be known exactly.
_RIGHT_WITHIN, _RIGHT_COUNT_WITHIN = 1.5, 1.1


_DIMENSIONS = {
    name: quantity.dimension
    for each in (_OF_TRAINING, *(kind.quantities for kind in PROGRAMS.values()))
    for name, quantity in each.items()
}


def quantities_of(spec: RunSpec) -> Mapping[str, Quantity]:
    """What a run of `spec` ends with that can be predicted, by name."""
    return _OF_TRAINING if spec.options is None else spec.options.quantities


def dimension_of(name: str) -> str | None:
    """What a quantity of any run is measured in; None if no run has it."""
    return _DIMENSIONS.get(name)


def value_text(value: float, dimension: str) -> str:
    """A value in base units, in the unit that suits its size: 29.7 MB, 3.2 ms, 27.3 %."""
    if dimension == "bytes":
        return bytes_text(value, 4)
    if dimension == "fraction":
        return scaled(value, "%")
    if dimension in ("count", "flop"):
        return count_text(value, 4) if abs(value) >= 1 else digits(value)
    step = step_for(value, dimension)
    return f"{digits(value / step.size)} {step.unit}".rstrip()


def is_right(predicted: float, measured: float, dimension: str) -> bool:
    """Whether a prediction came near enough to have been right.

    A share is held to what it leaves as well: 90 % is not near 99 % of useful time, which wastes a tenth of that.
    What is more than all is a ratio.
    """
    is_share = dimension == "fraction" and max(predicted, measured) <= 1
    if is_share and not _is_near(1 - predicted, 1 - measured, _RIGHT_WITHIN):
        return False
    return _is_near(predicted, measured, _RIGHT_COUNT_WITHIN if dimension == "count" else _RIGHT_WITHIN)


def _is_near(one: float, other: float, factor: float) -> bool:
    if one == other:
        return True
    return one > 0 and other > 0 and 1 / factor <= other / one <= factor
