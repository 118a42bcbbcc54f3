"""What a schedule is made of: passes, in an order for every rank, and how many activations that order keeps alive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from labs.spec import SpecError, Violation

Kind = Literal["F", "B", "W"]


@dataclass(frozen=True, slots=True)
class Pass:
    """One pass of a micro-batch through a chunk, a contiguous part of the model.

    `F` is the forward. `B` is the whole backward, unless the order also has a `W` (weight gradient) for the same chunk
    and micro-batch: then `B` computes the input gradient alone. Chunks are numbered along the model, not on the rank.
    """

    kind: Kind
    chunk: int
    micro_batch: int

    def __str__(self) -> str:
        return f"{self.chunk}{self.kind}{self.micro_batch}"


Order = tuple[tuple[Pass, ...], ...]  # for every rank, its passes of one step in the order it runs them


def split_backwards(passes: Sequence[Pass]) -> set[tuple[int, int]]:
    """The (chunk, micro-batch) pairs whose backward is split into input and weight gradient."""
    return {(each.chunk, each.micro_batch) for each in passes if each.kind == "W"}


def peak_in_flight(order: Order, weight_share: float = 1.0) -> tuple[float, ...]:
    """F25: the most activations each rank holds at once, counted in chunks of one micro-batch.

    They are kept from the forward until the whole backward has run. Where it is split, the input gradient releases
    all but `weight_share` of them and the weight gradient the rest; 1 keeps everything until then, an upper bound.
    Raises SpecError for a share outside 0 to 1. Source: Narayanan et al. 2021, section 2.2; Qi et al. 2023, section 2.
    """
    if not 0 <= weight_share <= 1:
        raise SpecError([Violation("weight_share", weight_share, "This is no share.", "0 to 1")])
    return tuple(_peak(passes, weight_share) for passes in order)


def _peak(passes: Sequence[Pass], weight_share: float) -> float:
    split = split_backwards(passes)
    held = most = 0.0
    for each in passes:
        if each.kind == "F":
            held += 1
        elif each.kind == "W":
            held -= weight_share
        else:
            held -= 1 - weight_share if (each.chunk, each.micro_batch) in split else 1
        most = max(most, held)
    return most
