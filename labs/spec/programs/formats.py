"""What number formats hold, lose and overflow at: what the `formats` program is asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from labs.spec.programs.parts import Figure, Options, Quantity


class FormatsOptions(Options):
    """`weight` plus `update`, `updates` times; a loss scale for one known `gradient` over `steps`; and a small GPT
    trained for as many.

    `averaged_over`: its loss is divided by this before backward, as that of one of so many micro-batches is.
    `growth_interval`: after how many good steps twice the loss scale is tried.
    """

    title: ClassVar[str] = "Number formats"
    about: ClassVar[str] = "What fp32, bf16, fp16 and fp8 hold, which updates they lose, and what loss scaling mends."
    figures: ClassVar[Mapping[str, Figure]] = {
        "range": Figure(
            "Largest number, smallest normal one, smallest of all", "bits of the exponent", "value", y_log=True
        ),
        "epsilon": Figure("Distance from 1 to the next number", "bits of the mantissa", "distance", y_log=True),
        "sum": Figure("A weight after many small updates", "updates", "weight"),
        "gradients": Figure("Sizes of a small GPT's gradients", "power of two", "share of the gradients"),
        "underflow": Figure("Gradients that become zero", "loss scale", "share of the gradients", x_log=True),
        "loss_scale": Figure("Dynamic loss scale", "step", "loss scale", y_log=True),
        "training": Figure("The same GPT in each format", "step", "loss", "", "nats"),
    }
    quantities: ClassVar[Mapping[str, Quantity]] = {
        "fp16_largest": Quantity("The largest number in fp16", "count"),
        "bf16_epsilon": Quantity("The distance from 1 to the next number in bf16", "fraction"),
        "updates_swallowed": Quantity("Updates that leave a bf16 weight as it was", "count"),
        "first_scale": Quantity("The loss scale of the first step that is not skipped", "count"),
    }

    program: Literal["formats"] = "formats"
    weight: Annotated[float, Field(ge=0.01, le=16)] = 1.0
    update: Annotated[float, Field(ge=1e-6, le=0.05)] = 0.001
    updates: Annotated[int, Field(ge=1, le=5000)] = 1000
    gradient: Annotated[float, Field(ge=1e-3, le=1e4)] = 2.0
    growth_interval: Annotated[int, Field(ge=1, le=100)] = 5
    steps: Annotated[int, Field(ge=2, le=150)] = 40
    averaged_over: Annotated[int, Field(ge=1, le=65_536)] = 4096
    learning_rate: Annotated[float, Field(gt=0, le=0.1)] = 1e-3

    @property
    def shown_updates(self) -> tuple[int, ...]:
        """After how many updates the weight is shown: some twenty times, from none to all of them."""
        every = max(1, self.updates // 20)
        return (*range(0, self.updates, every), self.updates)
