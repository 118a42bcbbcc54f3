"""Failures, checkpoints against them, and what writing one costs: what the `failures` program is asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from labs.spec.programs.parts import Figure, Options, Quantity, repeated
from labs.violations import Violation

Interval = Annotated[float, Field(ge=1, le=1e6)]
MAX_RANKS = 4
_HOUR_SECONDS = 3600


class FailuresOptions(Options):
    """A job on `gpus`, of which each fails once in `gpu_hours_per_failure` on average, that writes a checkpoint after
    every one of `intervals_seconds` of work; and a real checkpoint of `parameters`, sharded over the ranks."""

    title: ClassVar[str] = "Failures and checkpoints"
    about: ClassVar[str] = "How often to write checkpoints when things fail, and what writing one costs, now or later."
    axis: ClassVar[Literal["data", "pipeline"] | None] = "data"
    figures: ClassVar[Mapping[str, Figure]] = {
        "goodput": Figure("Useful share of time", "work between checkpoints", "share", "s", "fraction", x_log=True),
        "lost": Figure("Where the rest goes", "work between checkpoints", "share", "s", "fraction", x_log=True),
        "stall": Figure("A checkpoint is written during training", "step", "time", "", "s", y_log=True),
        "bytes_by_rank": Figure("Size of each rank's part of a checkpoint", "rank", "written", "", "B"),
    }
    quantities: ClassVar[Mapping[str, Quantity]] = {
        "best_interval_seconds": Quantity("Work between checkpoints that loses least", "seconds"),
        "goodput": Quantity("Useful share of time at best", "fraction"),
        "checkpoint_bytes_per_rank": Quantity("Written by the rank with the most", "bytes"),
        "write_seconds": Quantity("Time until a checkpoint is on disk", "seconds"),
        "sync_stall_seconds": Quantity("Training time lost to a synchronous checkpoint", "seconds"),
        "async_stall_seconds": Quantity("Training time lost to an asynchronous checkpoint", "seconds"),
        "async_blocked_seconds": Quantity("Of that, until training could go on", "seconds"),
    }

    program: Literal["failures"] = "failures"
    gpus: Annotated[int, Field(ge=1, le=1_000_000)] = 16_384
    gpu_hours_per_failure: Annotated[float, Field(gt=0, le=1e9)] = 50_677.0  # Llama 3
    checkpoint_seconds: Annotated[float, Field(gt=0, le=1e5)] = 60.0
    restart_seconds: Annotated[float, Field(ge=0, le=1e6)] = 600.0
    intervals_seconds: Annotated[tuple[Interval, ...], Field(min_length=3, max_length=16)] = (
        150,
        300,
        600,
        900,
        1_200,
        1_800,
        3_600,
        7_200,
    )
    failures: Annotated[int, Field(ge=100, le=1_000_000)] = 100_000  # that each rank sees
    parameters: Annotated[int, Field(ge=1_000, le=30_000_000)] = 10_000_000
    steps: Annotated[int, Field(ge=4, le=200)] = 20

    @property
    def mtbf_seconds(self) -> float:
        """Mean time between failures of the whole job."""
        return self.gpu_hours_per_failure * _HOUR_SECONDS / self.gpus

    def check(self, ranks: int) -> Iterator[Violation]:
        yield from repeated("intervals_seconds", self.intervals_seconds)
        if ranks > MAX_RANKS:
            message = f"{ranks} ranks would only share one disk."
            yield Violation("parallel.data", ranks, message, f"1 to {MAX_RANKS}")
        if self.mtbf_seconds < 1:
            message = f"Something fails every {self.mtbf_seconds:.1g} seconds."
            accepted = f"{self.gpus / _HOUR_SECONDS:.3g} or more"
            others = ("options.gpus",)
            yield Violation("options.gpu_hours_per_failure", self.gpu_hours_per_failure, message, accepted, others)
