"""Products in fewer than 16 bits: what casting their factors costs in memory traffic, and what travels narrower."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from labs.spec import Precision


@dataclass(frozen=True)
class Cast:
    """Bytes a value that casting reads and writes: of every `factor`, and of an `input` and a `gradient` once more
    where the product over tokens takes them in another layout. `sent_bytes` is a value that travels cast."""

    factor: float
    input_again: float
    gradient_again: float
    sent_bytes: float
    source: str


_SCALE_8, _SCALE_4 = 1 / 32, 1 / 16  # of a byte a value: one scale of 8 bits for a block of 32, or of 16
_MXFP8, _NVFP4 = 1.0 + _SCALE_8, 0.5 + _SCALE_4

CASTS: Mapping[Precision, Cast] = {
    # 16 bits read for the largest value and again for the cast, 8 written; a transposed copy is read and written.
    "fp8-mixed": Cast(5.0, 2.0, 2.0, 1.0, "torchao's float8 linear layer with dynamic scales per tensor"),
    # A block finds its scale on the way: read once. The gradient is written in both directions at the same time; the
    # input is cast along tokens from the 16 bits that are kept, as `factor` counts for backward.
    "mxfp8-mixed": Cast(
        2.0 + _MXFP8, 0.0, _MXFP8, _MXFP8, "OCP Microscaling Formats 1.0, section 5; Transformer Engine's MXFP8 recipe"
    ),
    # A scale of the whole tensor beside those of blocks of 16 takes a pass of its own.
    "nvfp4-mixed": Cast(4.0 + _NVFP4, 0.0, _NVFP4, _NVFP4, "Transformer Engine's NVFP4 recipe"),
}
