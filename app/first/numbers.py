"""The numbers of the first minute, from the theory library: bytes by part, over 1 to 64 GPUs and four ZeRO stages."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from math import log10

from app.theory.hardware import GPUS
from app.theory.state import LAYOUTS, training_state_bytes, zero_state_bytes
from app.units import digits, scaled

PARAMETERS = 7e9
LAYOUT = LAYOUTS["zero-16"]
GPU = GPUS["h100-80gb"]
PARTS = ("parameters", "gradients", "optimizer")
TOTAL_BYTES = training_state_bytes(PARAMETERS, LAYOUT.name)
MOST_RANKS, STAGES = 64, (0, 1, 2, 3)
TOP_BYTES = 120e9  # of the picture, whatever it shows: bars on one scale that never changes
LEAST_BYTES, MOST_BYTES = 1e9, 1e12  # of a guess: three powers of ten, the answer not in their middle
DECADES = log10(MOST_BYTES / LEAST_BYTES)

_COUNTS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight")


@dataclass(frozen=True)
class State:
    """What each of `ranks` GPUs holds under ZeRO `stage`."""

    ranks: int
    stage: int
    bytes: Mapping[str, float]

    @property
    def total_bytes(self) -> float:
        return sum(self.bytes.values())

    @property
    def heights(self) -> list[str]:
        """Of the bars, in percent of the picture."""
        return [f"{100 * self.bytes[part] / TOP_BYTES:.4f}" for part in PARTS]

    @property
    def per_parameter(self) -> list[str]:
        """Bytes per parameter by part, and of all."""
        values = [self.bytes[part] / PARAMETERS for part in PARTS] + [self.total_bytes / PARAMETERS]
        return [f"{text} {'byte' if text == '1' else 'bytes'}" for text in (digits(value, 3) for value in values)]

    @property
    def held(self) -> list[str]:
        """By part, and all."""
        return [gb(self.bytes[part]) for part in PARTS] + [gb(self.total_bytes)]

    @property
    def says(self) -> tuple[str, str]:
        """What to see in it: a finding, and what follows."""
        over = self.total_bytes - GPU.marketing_bytes
        held = gb(self.total_bytes)
        if self.ranks == 1 and self.stage:
            return f"{held}.", "ZeRO shares among GPUs; with one there is nobody to share with."
        if self.ranks == 1:
            return f"{gb(over)} too much for one GPU.", "Add GPUs, then share."
        if self.stage == 0:
            count = _COUNTS[self.ranks] if self.ranks < len(_COUNTS) else str(self.ranks)
            return f"Still {held} each:", f"{count} copies of the same bytes. Now share them with ZeRO."
        if over > 0:
            return f"{held} each,", f"{gb(over)} too much."
        return f"{held} each: it fits,", f"with {gb(-over)} left for activations."


def state(ranks: int, stage: int) -> State:
    held = {part: zero_state_bytes(PARAMETERS, ranks, stage, LAYOUT.name, part) for part in PARTS}
    return State(ranks, stage, held)


@cache
def states_json() -> bytes:
    """Every state there is to look at, `[ranks - 1][stage]`: the page's script draws them and computes none."""
    rows = [[_row(state(ranks, stage)) for stage in STAGES] for ranks in range(1, MOST_RANKS + 1)]
    return json.dumps(rows, separators=(",", ":")).encode()


@cache
def states_gzip() -> bytes:
    return gzip.compress(states_json(), mtime=0)


def _row(state: State) -> dict[str, object]:
    return {"heights": state.heights, "per_parameter": state.per_parameter, "held": state.held, "says": state.says}


def gb(value_bytes: float) -> str:
    """To four digits, as cards and the handbook write them: the terms beside a sum add up to it."""
    return scaled(value_bytes, "GB", 4)


def guess_text(value_bytes: float) -> str:
    """A number that was dragged along a log scale, in GB: no finer than it was meant."""
    return digits(value_bytes / 1e9, 3)


def place(value_bytes: float) -> float:
    """Where a value stands on the guess's log scale, 0 to 1."""
    share = log10(value_bytes / LEAST_BYTES) / DECADES
    return min(1.0, max(0.0, share))
