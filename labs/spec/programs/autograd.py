"""What backward computes, where it leaves it, and what accumulation adds up: what the `autograd` program is asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from labs.spec.programs.parts import Figure, Options, Quantity
from labs.spec.shapes import nearest_divisors
from labs.violations import Violation

Rate = Annotated[float, Field(gt=0, le=10)]


class AutogradOptions(Options):
    """A network of three layers `width` wide, trained on `batch` rows at once or in `pieces` equal ones.

    `passes` is how often backward is called without clearing gradients; `token_counts` are those of unequal pieces.
    """

    title: ClassVar[str] = "Autograd and accumulation"
    about: ClassVar[str] = "What backward computes and adds up, and when accumulated gradients are those of one batch."
    figures: ClassVar[Mapping[str, Figure]] = {
        "formulas": Figure("Backward held against its formulas", "layer", "largest relative difference"),
        "kept": Figure("Gradient after several backward passes", "backward passes", "times the first"),
        "accumulated": Figure(
            "Accumulated gradient held against that of one batch",
            "pieces",
            "largest relative difference",
            x_log=True,
            y_log=True,
        ),
        "undivided": Figure("Length of the accumulated gradient", "pieces", "times that of one batch", x_log=True),
        "training": Figure("Training with and without the division", "step", "loss", y_log=True),
        "unequal": Figure("What a token counts for", "tokens in its piece", "times its part of one batch", x_log=True),
    }
    quantities: ClassVar[Mapping[str, Quantity]] = {
        "undivided_ratio": Quantity("How much too long a gradient is that is not divided by the pieces", "count"),
        "kept_ratio": Quantity("The last backward pass's .grad over the first's", "count"),
        "freed_bytes": Quantity("Bytes that set_to_none frees", "bytes"),
        "tied_contributions": Quantity("Gradients that reach a tied table in one backward pass", "count"),
        "token_ratio": Quantity("How much more a token of the shortest piece counts than one of the longest", "count"),
    }

    program: Literal["autograd"] = "autograd"
    batch: Annotated[int, Field(ge=2, le=1024)] = 64
    pieces: Annotated[int, Field(ge=2, le=64)] = 8
    width: Annotated[int, Field(ge=4, le=512)] = 32
    passes: Annotated[int, Field(ge=2, le=20)] = 4
    token_counts: Annotated[tuple[Annotated[int, Field(ge=1, le=1024)], ...], Field(min_length=2, max_length=16)] = (
        4,
        8,
        20,
        32,
    )
    steps: Annotated[int, Field(ge=1, le=300)] = 60
    sgd_rate: Rate = 0.5
    adam_rate: Rate = 0.005

    @property
    def ways_to_cut(self) -> tuple[int, ...]:
        """Into how many equal pieces the batch is cut: every divisor of `pieces` but 1."""
        return tuple(parts for parts in range(2, self.pieces + 1) if self.pieces % parts == 0)

    def check(self, ranks: int) -> Iterator[Violation]:
        if self.batch % self.pieces:
            message = f"{self.batch} rows do not make {self.pieces} equal pieces."
            accepted = nearest_divisors(self.batch, self.pieces)
            yield Violation("options.pieces", self.pieces, message, accepted, ("options.batch",))
        elif self.batch == self.pieces:
            message = "Batch norm needs two rows in every piece."
            yield Violation("options.pieces", self.pieces, message, f"at most {self.batch // 2}", ("options.batch",))
