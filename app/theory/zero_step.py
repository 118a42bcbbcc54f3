"""One step under a ZeRO stage, move by move: what a rank holds of every layer, and what it has sent.

Source: Rajbhandari et al. 2020 (ZeRO), sections 5 and 7; the order of gathers and reductions is FSDP's (Zhao et al.
2023, section 3.2).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from app.theory.collectives import half_ring_bytes, ring_all_reduce_bytes
from app.theory.state import LAYOUTS, training_state_bytes

Move = Literal[
    "begin", "gather", "forward", "free", "gather again", "backward", "reduce", "update", "gather all", "end"
]


@dataclass(frozen=True)
class ZeroState:
    """After a move: the share a rank holds of each layer's parameters and gradients (1 is whole, 0 nothing) and of the
    optimizer's state, and the bytes it has sent so far. `layer` is the one the move was about."""

    phase: Literal["forward", "backward", "step"]
    move: Move
    layer: int | None
    parameters: tuple[float, ...]
    gradients: tuple[float, ...]
    optimizer: float
    sent_bytes: float

    def held_bytes(self, total: float, layout: str = "zero-16") -> dict[str, float]:
        """Bytes of each component, of a model of `total` parameters in equal layers."""
        each = total / len(self.parameters)
        known = LAYOUTS[layout]
        return {
            "parameters": known.parameters * each * sum(self.parameters),
            "gradients": known.gradients * each * sum(self.gradients),
            "optimizer": known.optimizer * total * self.optimizer,
        }


def zero_step(total: float, layers: int, ranks: int, stage: int, layout: str = "zero-16") -> tuple[ZeroState, ...]:
    """All states of a step over `total` parameters in equal layers, from before it to after it."""
    return tuple(_Step(total, layers, ranks, stage, layout).states())


class _Step:
    def __init__(self, total: float, layers: int, ranks: int, stage: int, layout: str) -> None:
        self.layers, self.stage, self.own = layers, stage, 1 / ranks
        weights = training_state_bytes(total / layers, layout, "parameters")
        gradients = training_state_bytes(total / layers, layout, "gradients")
        self.gather_bytes = half_ring_bytes(weights, ranks)
        self.reduce_bytes = half_ring_bytes(gradients, ranks)
        self.all_reduce_bytes = ring_all_reduce_bytes(gradients, ranks)
        kept = self.own if stage == 3 else 1.0
        self.now = ZeroState(
            "forward", "begin", None, (kept,) * layers, (0.0,) * layers, self.own if stage else 1.0, 0.0
        )

    def states(self) -> Iterator[ZeroState]:
        yield self.now
        for layer in range(self.layers):
            yield from self._forward(layer)
        self.now = replace(self.now, phase="backward")
        for layer in reversed(range(self.layers)):
            yield from self._backward(layer)
        self.now = replace(self.now, phase="step", layer=None)
        yield self._moved("update", None)
        self.now = replace(self.now, gradients=(0.0,) * self.layers)
        if self.stage in (1, 2):
            yield self._moved("gather all", None, self.layers * self.gather_bytes)
        else:
            yield self._moved("end", None)

    def _forward(self, layer: int) -> Iterator[ZeroState]:
        if self.stage == 3:
            yield self._moved("gather", layer, self.gather_bytes, parameters=1.0)
        yield self._moved("forward", layer)
        if self.stage == 3:
            yield self._moved("free", layer, parameters=self.own)

    def _backward(self, layer: int) -> Iterator[ZeroState]:
        if self.stage == 3:
            yield self._moved("gather again", layer, self.gather_bytes, parameters=1.0)
        yield self._moved("backward", layer, gradients=1.0)
        sent = self.reduce_bytes if self.stage else self.all_reduce_bytes
        kept = self.own if self.stage >= 2 else 1.0
        yield self._moved("reduce", layer, sent, self.own if self.stage == 3 else None, kept)

    def _moved(
        self,
        move: Move,
        layer: int | None,
        sent: float = 0.0,
        parameters: float | None = None,
        gradients: float | None = None,
    ) -> ZeroState:
        now = self.now
        self.now = replace(
            now,
            move=move,
            layer=layer,
            parameters=_with_share(now.parameters, layer, parameters),
            gradients=_with_share(now.gradients, layer, gradients),
            sent_bytes=now.sent_bytes + sent,
        )
        return self.now


def _with_share(shares: tuple[float, ...], layer: int | None, share: float | None) -> tuple[float, ...]:
    if share is None:
        return shares
    return tuple(share if index == layer else old for index, old in enumerate(shares))
