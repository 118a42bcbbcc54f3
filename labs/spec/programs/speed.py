"""How much of a machine a small training uses, and what it waits for: what the `speed` program is asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from labs.spec.programs.parts import Figure, Options, Quantity, repeated
from labs.spec.vocabulary import Model
from labs.violations import Violation

_HEAD_SIZE = 32
_VOCAB = 256  # bytes
MAX_FLOPS = 4e12  # of all steps together: some minutes of one core
MAX_LOADING_SECONDS = 60.0


class SpeedOptions(Options):
    """A GPT trained by one process on `batch` sequences a step, and at every other of `batches` besides.

    A batch takes `loader_seconds` to come, in the step that needs it or, with `prefetch`, behind the one before.
    """

    title: ClassVar[str] = "Speed of a training step"
    about: ClassVar[str] = (
        "FLOPs counted as they are dispatched, what share of this machine's own peak they make, and what a step waits "
        "for."
    )
    figures: ClassVar[Mapping[str, Figure]] = {
        "rate": Figure("Rate of a step without a loader", "sequences", "rate", "", "FLOP/s", x_log=True),
        "step": Figure("Where a step's time goes", "step", "time", "", "s"),
    }
    quantities: ClassVar[Mapping[str, Quantity]] = {
        "model_flops_per_step": Quantity("FLOPs the model needs for a step", "flop"),
        "hardware_flops_per_step": Quantity("FLOPs done in a step, recomputation included", "flop"),
        "mfu": Quantity("MFU, of this machine's own peak", "fraction"),
        "hfu": Quantity("HFU, recomputation included", "fraction"),
        "compute_seconds": Quantity("Computing a step", "seconds"),
        "waiting_seconds": Quantity("Waiting for a step's data", "seconds"),
        "busy_share": Quantity("Share of time that computes", "fraction"),
        "single_share": Quantity("Rate with one sequence over that with all", "fraction"),
        "peak_flops_per_second": Quantity("Peak: a large product on this machine", "flop_per_second"),
    }

    program: Literal["speed"] = "speed"
    layers: Annotated[int, Field(ge=1, le=12)] = 4
    hidden: Annotated[int, Field(ge=_HEAD_SIZE, le=768)] = 128
    sequence: Annotated[int, Field(ge=16, le=512)] = 64
    batch: Annotated[int, Field(ge=1, le=64)] = 8
    batches: Annotated[tuple[Annotated[int, Field(ge=1, le=64)], ...], Field(max_length=6)] = (1, 2, 4)
    recompute: Literal["none", "full"] = "none"
    loader_seconds: Annotated[float, Field(ge=0, le=1)] = 0.0
    prefetch: bool = False
    steps: Annotated[int, Field(ge=3, le=100)] = 10

    @property
    def model(self) -> Model:
        heads = self.hidden // _HEAD_SIZE
        return Model(
            layers=self.layers,
            hidden=self.hidden,
            heads=heads,
            kv_heads=heads,
            ffn_hidden=4 * self.hidden,
            vocab=_VOCAB,
        )

    @property
    def tokens_per_step(self) -> int:
        return self.batch * self.sequence

    def check(self, ranks: int) -> Iterator[Violation]:
        if self.hidden % _HEAD_SIZE:
            message = f"{self.hidden} cannot be cut into heads of {_HEAD_SIZE}."
            yield Violation("options.hidden", self.hidden, message, f"a multiple of {_HEAD_SIZE}")
        yield from repeated("batches", self.batches)
        sequences = (self.batch + sum(self.batches)) * (self.steps + 1)
        each = 72.0 * self.layers * self.hidden**2 + 6 * _VOCAB * self.hidden
        flops = (each + 12.0 * self.layers * self.hidden * self.sequence) * self.sequence * sequences * 4 / 3
        if flops > MAX_FLOPS:
            message = f"All steps together take {flops:.1e} FLOPs; a run may use {MAX_FLOPS:.0e}."
            yield Violation("options.batch", self.batch, message, "fewer sequences, steps or layers")
        loading = self.loader_seconds * self.steps
        if loading > MAX_LOADING_SECONDS:
            message = f"Loading alone takes {loading:.0f} s; a run may wait {MAX_LOADING_SECONDS:.0f} s."
            yield Violation("options.loader_seconds", self.loader_seconds, message, "less, or fewer steps")
