"""Losses of tiny models by their size and their tokens: what the `scaling` program is asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from labs.spec.programs.parts import Figure, Options, Quantity, repeated
from labs.spec.vocabulary import Model
from labs.violations import Violation

Width = Annotated[int, Field(ge=8, le=128)]
Budget = Annotated[int, Field(ge=1_000, le=2_000_000)]
_HEAD_SIZE = 8
_VOCAB = 256  # bytes
MAX_FLOPS = 4e12  # of all trainings together: some minutes of one core
MAX_STEPS = 30_000


class ScalingOptions(Options):
    """A GPT of each of `widths`, trained anew for each of `token_budgets`, and what held-out text then costs it."""

    title: ClassVar[str] = "Scaling laws"
    about: ClassVar[str] = (
        "How loss falls with parameters, tokens and compute. Models of a few thousand parameters that read bytes are "
        "far from where 20 tokens per parameter was found: the shape of the curves carries over, their numbers do not."
    )
    figures: ClassVar[Mapping[str, Figure]] = {
        "loss_by_compute": Figure("Loss by compute", "FLOPs", "loss", "FLOP", "nats", x_log=True, y_log=True),
        "loss_by_tokens": Figure(
            "Loss by tokens", "tokens", "loss", "tokens", "nats", x_log=True, y_log=True, fitted=("power law",)
        ),
        "loss_by_parameters": Figure(
            "Loss by parameters", "parameters", "loss", "", "nats", x_log=True, y_log=True, fitted=("power law",)
        ),
        "isoflop": Figure("Loss at equal compute", "parameters", "loss", "", "nats", x_log=True, fitted=("parabola",)),
        "flops": Figure("FLOPs of a training", "tokens", "FLOPs", "tokens", "FLOP", x_log=True, y_log=True),
    }
    quantities: ClassVar[Mapping[str, Quantity]] = {
        "training_flops": Quantity("FLOPs of all trainings together", "flop"),
        "tokens_per_parameter": Quantity("Tokens per parameter at the best size", "count"),
        "parameter_exponent": Quantity("Exponent of loss over parameters", "count"),
        "parameter_exponent_error": Quantity("Its standard error", "count"),
        "token_exponent": Quantity("Exponent of loss over tokens", "count"),
        "token_exponent_error": Quantity("Its standard error", "count"),
    }

    program: Literal["scaling"] = "scaling"
    widths: Annotated[tuple[Width, ...], Field(min_length=3, max_length=8)] = (8, 16, 24, 32, 48)
    layers: Annotated[int, Field(ge=1, le=6)] = 2
    token_budgets: Annotated[tuple[Budget, ...], Field(min_length=3, max_length=6)] = (
        100_000,
        200_000,
        400_000,
        800_000,
    )
    sequence: Annotated[int, Field(ge=16, le=256)] = 64
    batch: Annotated[int, Field(ge=1, le=64)] = 8
    learning_rate: Annotated[float, Field(gt=0, le=0.1)] = 0.01  # at width 32; it goes with 1/width

    @property
    def tokens_per_step(self) -> int:
        return self.batch * self.sequence

    def model(self, width: int) -> Model:
        """The shape of the model of this width."""
        heads = width // _HEAD_SIZE
        return Model(layers=self.layers, hidden=width, heads=heads, kv_heads=heads, ffn_hidden=4 * width, vocab=_VOCAB)

    def steps(self, budget: int) -> int:
        """Whole steps that `budget` tokens are enough for."""
        return budget // self.tokens_per_step

    def check(self, ranks: int) -> Iterator[Violation]:
        for index, width in enumerate(self.widths):
            if width % _HEAD_SIZE:
                message = f"{width} cannot be cut into heads of {_HEAD_SIZE}."
                yield Violation(f"options.widths.{index}", width, message, f"a multiple of {_HEAD_SIZE}")
        for index, budget in enumerate(self.token_budgets):
            if not self.steps(budget):
                message = f"A step takes batch × sequence = {self.tokens_per_step:,} tokens."
                others = ("options.batch", "options.sequence")
                accepted = f"{self.tokens_per_step:,} or more"
                yield Violation(f"options.token_budgets.{index}", budget, message, accepted, others)
        yield from repeated("widths", self.widths)
        yield from repeated("token_budgets", self.token_budgets)
        yield from self._check_amount()

    def _check_amount(self) -> Iterator[Violation]:
        steps = len(self.widths) * sum(map(self.steps, self.token_budgets))
        if steps > MAX_STEPS:
            message = f"All trainings together take {steps:,} steps; a run may take {MAX_STEPS:,}."
            yield Violation("options.token_budgets", self.token_budgets, message, "fewer tokens, or a larger batch")
        each = (72.0 * self.layers * h * h + 6 * _VOCAB * h + 12 * self.layers * h * self.sequence for h in self.widths)
        flops = sum(each) * sum(self.token_budgets)
        if flops > MAX_FLOPS:
            message = f"All trainings together take {flops:.1e} FLOPs; a run may use {MAX_FLOPS:.0e}."
            yield Violation("options.widths", self.widths, message, "narrower models, or fewer tokens")
