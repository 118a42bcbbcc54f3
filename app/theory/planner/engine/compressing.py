"""What is handed to a collective when gradients are compressed first (F45, F46).

Kernels that pick, sort or orthogonalise are not timed: on GPUs they cost as much as a small model's backward, so a
ratio here is the most that compression can save.
"""

from __future__ import annotations

from dataclasses import dataclass

from app.theory.compression import power_sgd_ratio, top_k_ratio
from labs.spec import Compression

INDEX_BYTES = 4.0
HALF_BYTES = 2.0
BITS = 8.0


@dataclass(frozen=True)
class Sent:
    """`contribution_bytes` of one rank's contribution; gathered ones come from every rank."""

    operation: str
    contribution_bytes: float

    def bytes_of(self, ranks: int) -> float:
        """The full tensor of the collective: an all-gather's is everybody's contribution."""
        return self.contribution_bytes * (ranks if self.operation == "all_gather" else 1)


def compressed(compression: Compression, side: int, parameters: float, bytes_each: float) -> Sent:
    """One rank's gradients of `parameters` values of `bytes_each` after compression.

    top-k and sign bits differ between ranks and are all-gathered; random-k with a shared seed, half precision and
    PowerSGD's factors can be summed. PowerSGD is taken for square matrices of `side`.
    """
    kind, dense = compression.kind, parameters * bytes_each
    if kind in ("fp16", "bf16"):
        return Sent("all_reduce", min(dense, parameters * HALF_BYTES))
    if kind == "random-k":
        return Sent("all_reduce", dense * compression.density)
    if kind == "top-k":
        return Sent("all_gather", dense / top_k_ratio(compression.density, bytes_each, INDEX_BYTES))
    if kind == "one-bit":
        return Sent("all_gather", parameters / BITS)
    if kind == "powersgd":
        return Sent("all_reduce", dense / power_sgd_ratio(side, side, min(compression.rank, side)))
    return Sent("all_reduce", dense)
