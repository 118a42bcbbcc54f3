"""One step under a ZeRO stage, move by move: what a rank holds of every layer, and what it has sent.

Source: Rajbhandari et al. 2020 (ZeRO), sections 5 and 7; the order of gathers and reductions is FSDP's (Zhao et al.
2023, section 3.2).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from app.theory.collectives import half_ring_bytes, ring_all_reduce_bytes
from app.theory.state import LAYOUTS, StateLayout

Move = Literal[
    "begin", "gather", "forward", "free", "gather again", "backward", "reduce", "repeat", "update", "gather all", "end"
]


@dataclass(frozen=True)
class Unit:
    """Parameters that are gathered and freed together. One that `stays` is whole from forward to backward, as FSDP2's
    root unit is."""

    name: str
    parameters: float
    stays: bool = False


def equal_layers(total: float, layers: int) -> tuple[Unit, ...]:
    return tuple(Unit(f"layer {layer}", total / layers) for layer in range(layers))


@dataclass(frozen=True)
class ZeroState:
    """After a move: the share a rank holds of each unit's parameters and gradients (1 is whole, 0 nothing) and of the
    optimizer's state. `unit` is the number of the one the move was about.

    payload_bytes: sizes of the tensors that were handed to collectives so far; sent_bytes: what a rank sent for them
    around a ring.
    """

    phase: Literal["forward", "backward", "step"]
    move: Move
    unit: int | None
    parameters: tuple[float, ...]
    gradients: tuple[float, ...]
    optimizer: float
    payload_bytes: float = 0.0
    sent_bytes: float = 0.0

    def held_bytes(self, units: Sequence[Unit], layout: StateLayout = LAYOUTS["zero-16"]) -> dict[str, float]:
        """Bytes of each component that a rank holds."""

        def held(shares: Sequence[float]) -> float:
            return sum(unit.parameters * share for unit, share in zip(units, shares, strict=True))

        return {
            "parameters": layout.parameters * held(self.parameters),
            "gradients": layout.gradients * held(self.gradients),
            "optimizer": layout.optimizer * held((self.optimizer,) * len(units)),
        }


def zero_step(
    units: Sequence[Unit], ranks: int, stage: int, layout: StateLayout = LAYOUTS["zero-16"], micro_batches: int = 1
) -> tuple[ZeroState, ...]:
    """All states of a step over `units`, in the order of forward, from before it to after it.

    Of several micro-batches the first is played; where the others send as well (stages 2 and 3), one state stands for
    all of them. Stages 0 and 1 send with the last alone, which is then the one that is played.
    """
    return tuple(_Step(units, ranks, stage, layout, micro_batches).states())


class _Step:
    def __init__(self, units: Sequence[Unit], ranks: int, stage: int, layout: StateLayout, micro_batches: int) -> None:
        self.units, self.ranks, self.stage, self.own = units, ranks, stage, 1 / ranks
        self.layout, self.micro_batches = layout, micro_batches
        kept, count = self.own if stage == 3 else 1.0, len(units)
        self.now = ZeroState("forward", "begin", None, (kept,) * count, (0.0,) * count, self.own if stage else 1.0)

    def states(self) -> Iterator[ZeroState]:
        yield self.now
        for unit in range(len(self.units)):
            yield from self._forward(unit)
        self.now = replace(self.now, phase="backward")
        for unit in reversed(range(len(self.units))):
            yield from self._backward(unit)
        if self.stage >= 2 and self.micro_batches > 1:
            yield self._repeated()
        self.now = replace(self.now, phase="step")
        yield self._moved("update", None)
        self.now = replace(self.now, gradients=(0.0,) * len(self.units))
        if self.stage in (1, 2):
            weights = sum(map(self._weight_bytes, range(len(self.units))))
            yield self._moved("gather all", None, weights, half_ring_bytes(weights, self.ranks))
        else:
            yield self._moved("end", None)

    def _weight_bytes(self, unit: int) -> float:
        return self.layout.parameters * self.units[unit].parameters

    def _gather(self, move: Move, unit: int) -> ZeroState:
        size = self._weight_bytes(unit)
        return self._moved(move, unit, size, half_ring_bytes(size, self.ranks), parameters=1.0)

    def _forward(self, unit: int) -> Iterator[ZeroState]:
        if self.stage == 3:
            yield self._gather("gather", unit)
        yield self._moved("forward", unit)
        if self.stage == 3 and not self.units[unit].stays:
            yield self._moved("free", unit, parameters=self.own)

    def _backward(self, unit: int) -> Iterator[ZeroState]:
        if self.stage == 3 and not self.units[unit].stays:
            yield self._gather("gather again", unit)
        yield self._moved("backward", unit, gradients=1.0)
        size = self.layout.gradients * self.units[unit].parameters
        sent = half_ring_bytes(size, self.ranks) if self.stage else ring_all_reduce_bytes(size, self.ranks)
        kept = self.own if self.stage >= 2 else 1.0
        yield self._moved("reduce", unit, size, sent, self.own if self.stage == 3 else None, kept)

    def _repeated(self) -> ZeroState:
        """What the other micro-batches hand over, which is as much each as the first did."""
        others = self.micro_batches - 1
        return self._moved("repeat", None, others * self.now.payload_bytes, others * self.now.sent_bytes)

    def _moved(
        self,
        move: Move,
        unit: int | None,
        payload: float = 0.0,
        sent: float = 0.0,
        parameters: float | None = None,
        gradients: float | None = None,
    ) -> ZeroState:
        now = self.now
        self.now = replace(
            now,
            move=move,
            unit=unit,
            parameters=_with_share(now.parameters, unit, parameters),
            gradients=_with_share(now.gradients, unit, gradients),
            payload_bytes=now.payload_bytes + payload,
            sent_bytes=now.sent_bytes + sent,
        )
        return self.now


def _with_share(shares: tuple[float, ...], unit: int | None, share: float | None) -> tuple[float, ...]:
    if share is None:
        return shares
    return tuple(share if index == unit else old for index, old in enumerate(shares))
