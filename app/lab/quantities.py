"""The quantities of a run that can be predicted."""

from __future__ import annotations

from collections.abc import Mapping

from labs.spec import PROGRAMS, Quantity, RunSpec

_OF_TRAINING: Mapping[str, Quantity] = {
    "model_state_bytes": Quantity("Model state per rank", "bytes"),
    "optimizer_bytes": Quantity("Optimizer state per rank", "bytes"),
    "payload_bytes_per_step": Quantity("Payload per rank and step", "bytes"),
    "wire_bytes_per_step": Quantity("Sent per rank and step, around rings", "bytes"),
    "activation_bytes": Quantity("Activations at their largest", "bytes"),
    "step_seconds": Quantity("Duration of a step", "seconds"),
}
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
