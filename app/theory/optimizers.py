"""Optimizers by the moments they keep per parameter, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from app.theory.state import StateLayout


@dataclass(frozen=True)
class OptimizerState:
    """Moments of one parameter: how many in the layout's own type, and bytes of what has a type of its own."""

    name: str
    title: str
    moments: int
    fixed_bytes: float
    source: str


OPTIMIZERS: Mapping[str, OptimizerState] = {
    state.name: state
    for state in (
        OptimizerState("adamw", "AdamW", 2, 0.0, "Loshchilov and Hutter 2019"),
        OptimizerState("sgd", "SGD with momentum", 1, 0.0, "one momentum per parameter"),
        OptimizerState("lars", "LARS", 1, 0.0, "You, Gitman and Ginsburg 2017, algorithm 1"),
        OptimizerState("lamb", "LAMB", 2, 0.0, "You et al. 2020, algorithm 2"),
        # One row and one column of statistics per matrix: 2/h values per parameter, left out as less than 0.1 %.
        OptimizerState("adafactor", "Adafactor without momentum", 0, 0.0, "Shazeer and Stern 2018, section 3"),
        # Two 8-bit moments and an fp32 scale for each block of 256 values of either.
        OptimizerState(
            "adamw-8bit", "AdamW with 8-bit moments", 0, 2.0 + 2 * 4.0 / 256, "Dettmers et al. 2022, section 2"
        ),
    )
}


def optimizer_bytes_per_parameter(layout: StateLayout, optimizer: str = "adamw") -> float:
    """Bytes of master weights (where `layout` keeps them) and of the moments of `optimizer` per parameter.

    Layouts are written for Adam: its two moments are replaced by what the optimizer keeps, in the same type.
    """
    state = OPTIMIZERS[optimizer]
    moments = [size for what, size in layout.parts if "momentum" in what or "variance" in what]
    master = layout.optimizer - sum(moments)
    return master + state.moments * (moments[0] if moments else 0.0) + state.fixed_bytes
