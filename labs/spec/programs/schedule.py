"""What idles in a pipeline, by its schedule: what the `schedule` program is asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from labs.spec.programs.parts import Figure, Options, Quantity
from labs.spec.schedules import SCHEDULE_RULES, Schedule, ScheduleFields, schedule_violations
from labs.violations import Violation

Seconds = Annotated[float, Field(ge=0.001, le=0.2)]
MAX_SECONDS = 150.0  # of all steps together


class ScheduleOptions(Options):
    """Steps of a pipeline whose passes take known times. The last of `micro_batches` under `schedule` is drawn.

    The seconds are of one micro-batch on one rank: with several stages a rank they are shared out among them.
    `virtual_stages` is for the schedules that take any number (interleaved, looped-bfs); zero-bubble is run with one
    stage a rank, which makes it ZB-H1. `slow_down` is a factor for every rank, 1 where it is empty.
    """

    title: ClassVar[str] = "Pipeline schedules"
    about: ClassVar[str] = (
        "PyTorch's own schedules over stages that sleep as long as their passes take: how much idles, by schedule, "
        "micro-batches, balance and links."
    )
    axis: ClassVar[Literal["data", "pipeline"] | None] = "pipeline"
    fewest_ranks: ClassVar[int] = 2
    figures: ClassVar[Mapping[str, Figure]] = {
        "bubble": Figure("Idle share of a step", "micro-batches", "idle share", x_log=True),
        "step": Figure("Duration of a step", "micro-batches", "time", "", "s", x_log=True, y_log=True),
        "in_flight": Figure("Micro-batches whose activations a rank holds at its peak", "rank", "micro-batches"),
    }
    quantities: ClassVar[Mapping[str, Quantity]] = {
        "bubble_fraction": Quantity("Idle share of the drawn step", "fraction"),
        "step_seconds": Quantity("Duration of the drawn step", "seconds"),
        "in_flight": Quantity("Micro-batches in flight on the first rank", "count"),
    }

    program: Literal["schedule"] = "schedule"
    schedule: Schedule = "1f1b"
    compared_with: Annotated[tuple[Schedule, ...], Field(max_length=6)] = ("gpipe", "interleaved", "zero-bubble")
    micro_batches: Annotated[tuple[Annotated[int, Field(ge=1, le=64)], ...], Field(min_length=1, max_length=6)] = (
        32,
        16,
        8,
    )
    virtual_stages: Annotated[int, Field(ge=2, le=4)] = 2
    forward_seconds: Seconds = 0.03
    input_gradient_seconds: Seconds = 0.03
    weight_gradient_seconds: Seconds = 0.03
    message_seconds: Annotated[float, Field(ge=0, le=0.2)] = 0.0
    slow_down: Annotated[tuple[Annotated[float, Field(ge=0.25, le=4)], ...], Field(max_length=8)] = ()
    repeats: Annotated[int, Field(ge=1, le=5)] = 2

    @property
    def schedules(self) -> tuple[Schedule, ...]:
        """All that are run, the drawn one first."""
        return tuple(dict.fromkeys((self.schedule, *self.compared_with)))

    def stages_a_rank(self, schedule: Schedule) -> int:
        """How many stages every rank has under `schedule`."""
        rule = SCHEDULE_RULES[schedule]
        takes_any = rule.most_virtual_stages is None and schedule != "zero-bubble"
        return self.virtual_stages if takes_any else rule.least_virtual_stages

    def slow_downs(self, ranks: int) -> tuple[float, ...]:
        """The factor of every rank."""
        return self.slow_down or (1.0,) * ranks

    def check(self, ranks: int) -> Iterator[Violation]:
        for index, given in enumerate(self.micro_batches):
            for schedule in self.schedules:
                fields = ScheduleFields(
                    "options.schedule" if schedule == self.schedule else "options.compared_with",
                    "parallel.pipeline",
                    "options.virtual_stages",
                    f"options.micro_batches.{index}",
                )
                yield from schedule_violations(schedule, ranks, given, self.stages_a_rank(schedule), fields)
        if self.slow_down and len(self.slow_down) != ranks:
            message = f"These are {len(self.slow_down)} factors for {ranks} ranks."
            yield Violation("options.slow_down", self.slow_down, message, f"{ranks} factors, or none")
        seconds = self._about_seconds(ranks)
        if seconds > MAX_SECONDS:
            message = f"All steps together take about {seconds:,.0f} s; a run may take {MAX_SECONDS:.0f} s."
            accepted = "fewer micro-batches, schedules or repeats, or shorter passes"
            yield Violation("options.micro_batches", self.micro_batches, message, accepted)

    def _about_seconds(self, ranks: int) -> float:
        """All passes one after the other on the slowest rank, and every message waited for: seldom less than it is."""
        each = self.forward_seconds + self.input_gradient_seconds + self.weight_gradient_seconds
        each *= max(1.0, *self.slow_downs(ranks))
        return self.repeats * sum(
            (count + ranks - 1) * (each + 2 * self.stages_a_rank(schedule) * self.message_seconds)
            for schedule in self.schedules
            for count in self.micro_batches
        )
