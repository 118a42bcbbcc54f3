"""How fast matrices are multiplied, by size, type and number of slices: what the `gemm` program is asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from labs.spec.programs.parts import Figure, Options, Quantity
from labs.violations import Violation

Side = Annotated[int, Field(ge=8, le=16_384)]
Dtype = Literal["fp32", "bf16", "fp16"]
MAX_FLOPS = 2e12  # of all products together
MAX_BYTES = 2e9  # of the matrices of one product


class GemmOptions(Options):
    """Square products of each of `sides`, and the product of an MLP's first layer cut by columns into each of `slices`,
    as tensor parallelism cuts it: (tokens, hidden) × (hidden, 4 hidden / slices)."""

    title: ClassVar[str] = "Matrix products"
    about: ClassVar[str] = "How much of the machine a product reaches, by its size, its type and how it is sliced."
    figures: ClassVar[Mapping[str, Figure]] = {
        "rate": Figure("Rate of a square product", "side", "rate", "", "FLOP/s", x_log=True, y_log=True),
        "sliced": Figure("Rate of one slice of an MLP's first layer", "slices", "rate", "", "FLOP/s", x_log=True),
    }
    quantities: ClassVar[Mapping[str, Quantity]] = {
        "best_flops_per_second": Quantity("Best rate of a square product, in the first type", "flop_per_second"),
        "small_share": Quantity("Rate of the smallest square over the best", "fraction"),
        "slice_share": Quantity("Rate of the thinnest slice over that of the thickest", "fraction"),
    }

    program: Literal["gemm"] = "gemm"
    sides: Annotated[tuple[Side, ...], Field(min_length=1, max_length=12)] = (32, 64, 128, 256, 512, 1024)
    dtypes: Annotated[tuple[Dtype, ...], Field(min_length=1, max_length=3)] = ("fp32", "bf16")
    tokens: Side = 256
    hidden: Side = 1024
    slices: Annotated[tuple[Annotated[int, Field(ge=1, le=64)], ...], Field(max_length=7)] = (1, 2, 4, 8)
    repeats: Annotated[int, Field(ge=1, le=100)] = 5

    def check(self, ranks: int) -> Iterator[Violation]:
        for index, parts in enumerate(self.slices):
            if 4 * self.hidden % parts:
                message = f"{parts} slices do not divide 4 × hidden = {4 * self.hidden:,} columns."
                yield Violation(f"options.slices.{index}", parts, message, "a divisor of it", ("options.hidden",))
        squares = sum(2.0 * side**3 for side in self.sides)
        sliced = sum(8.0 * self.tokens * self.hidden**2 / parts for parts in self.slices)
        flops = (squares + sliced) * len(self.dtypes) * (self.repeats + 1)
        # in fp32, as they are drawn, and once more in their own type; (tokens, hidden) × (hidden, 4 hidden / slices)
        thickest = 4 * self.hidden / min(self.slices) if self.slices else 0.0
        sliced_values = self.tokens * self.hidden + (self.hidden + self.tokens) * thickest
        if self.slices and 8 * sliced_values > MAX_BYTES:
            message = f"Its thickest slice takes {8 * sliced_values:.1e} bytes; a product may take {MAX_BYTES:.0e}."
            yield Violation("options.hidden", self.hidden, message, "a smaller width, or more slices")
        if 8 * 3.0 * max(self.sides) ** 2 > MAX_BYTES:
            message = f"Its matrices take {24.0 * max(self.sides) ** 2:.1e} bytes; a product may take {MAX_BYTES:.0e}."
            yield Violation("options.sides", self.sides, message, f"at most {int((MAX_BYTES / 24) ** 0.5):,}")
        if flops > MAX_FLOPS:
            message = f"All products together take {flops:.1e} FLOPs; a run may use {MAX_FLOPS:.0e}."
            yield Violation("options.sides", self.sides, message, "smaller sides, or fewer repeats")
