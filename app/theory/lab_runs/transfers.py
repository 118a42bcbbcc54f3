"""The record of what a run is expected to send."""

from __future__ import annotations

from dataclasses import dataclass

from app.theory.collectives import all_to_all_bytes, half_ring_bytes, ring_all_reduce_bytes
from labs.spec.events import StepPhase


@dataclass(frozen=True)
class Transfer:
    """One kind of collective of a step: payload is the tensor handed over, wire is what one rank sends in a ring.

    Where `is_mean`, how much a rank hands over depends on the data, and the payload is that of all ranks of the group
    by their number.
    """

    title: str
    operation: str
    phase: StepPhase
    count: int
    payload_bytes: float
    wire_bytes: float
    group: str = "data"
    group_size: int = 1
    is_mean: bool = False

    @property
    def messages(self) -> int:
        """That a rank sends one after the other: around a ring of n ranks n−1 for each collective, twice that for an
        all-reduce; one for what goes straight on. Source: Patarasuk and Yuan 2009, section 3."""
        if self.group_size < 2:
            return 0
        if self.operation in ("send", "broadcast"):
            return self.count
        return self.count * (self.group_size - 1) * (2 if self.operation == "all_reduce" else 1)


def transfer(
    title: str,
    operation: str,
    phase: StepPhase,
    group: str,
    ranks: int,
    count: int,
    payload_bytes: float,
    is_mean: bool = False,
) -> Transfer:
    """A row of the ledger with its wire bytes, for `payload_bytes` in all over a ring of `ranks`."""
    wire_bytes = _wire_bytes(operation, payload_bytes, ranks)
    return Transfer(title, operation, phase, count, payload_bytes, wire_bytes, group, ranks, is_mean)


def _wire_bytes(operation: str, payload_bytes: float, ranks: int) -> float:
    if operation == "all_reduce":
        return ring_all_reduce_bytes(payload_bytes, ranks)
    if operation == "all_to_all":
        return all_to_all_bytes(payload_bytes, ranks)
    if operation in ("send", "broadcast"):
        return payload_bytes if ranks > 1 else 0.0
    return half_ring_bytes(payload_bytes, ranks)


@dataclass(frozen=True)
class RunTheory:
    """What to expect of a rank of a run."""

    parameters: int
    state_layout: str
    model_state_bytes: dict[str, float]
    transfers: tuple[Transfer, ...]

    @property
    def state_total_bytes(self) -> float:
        return sum(self.model_state_bytes.values())

    @property
    def payload_bytes_per_step(self) -> float:
        return sum(transfer.payload_bytes for transfer in self.transfers)

    @property
    def wire_bytes_per_step(self) -> float:
        return sum(transfer.wire_bytes for transfer in self.transfers)
