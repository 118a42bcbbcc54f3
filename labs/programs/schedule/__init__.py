"""What a pipeline schedule costs: torch's schedules over stages that take known times.

Every schedule is run with every number of micro-batches, a few times; the fastest counts, for what disturbs a step only
ever makes it longer. With p equal ranks and m micro-batches GPipe and 1F1B idle (p−1)/(m+p−1) of the time, interleaved
stages (p−1)/(vm+p−1), and ZB-H1 about a third of 1F1B's. What differs besides is how many micro-batches a rank has to
hold: m under GPipe, p−r under 1F1B on rank r.

Huang et al. 2019 (GPipe), section 2.3; Narayanan et al. 2021, section 2.2; Qi et al. 2023, section 2.
"""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining.schedules import PipelineScheduleMulti

from labs.parallel.pipeline import SCHEDULES, stages_of
from labs.probes.timeline import Span, What
from labs.programs.running import Bench
from labs.programs.schedule.stage import MESSAGE, TimedStage, Work
from labs.programs.schedule.step import Step, whole_backwards
from labs.spec import Parallel, Schedule, ScheduleOptions


def measure(options: ScheduleOptions, bench: Bench) -> dict[str, float]:
    """Idle shares, durations and micro-batches in flight; the drawn step's as quantities."""
    for schedule in reversed(options.schedules):  # the drawn one last
        for micro_batches in options.micro_batches:
            step = _fastest_step(options, bench, schedule, micro_batches)
            bench.point_of_all("bubble", schedule, micro_batches, step.idle_share)
            bench.point_of_all("step", schedule, micro_batches, step.seconds)
        bench.point("in_flight", schedule, bench.rank, step.in_flight(bench.rank))
    bench.spans(1, step.with_waits(bench.rank))
    return {"bubble_fraction": step.idle_share, "step_seconds": step.seconds, "in_flight": step.in_flight(0)}


def _fastest_step(options: ScheduleOptions, bench: Bench, schedule: Schedule, micro_batches: int) -> Step:
    """The fastest of a few, after one in which every pass takes no time and the ranks find each other."""
    pipeline = _Pipeline(options, bench, schedule, micro_batches)
    pipeline.run(hurries=True)
    steps = [pipeline.run() for _ in range(options.repeats)]
    return min(steps, key=lambda step: step.seconds)


class _Pipeline:
    """This rank's stages, under torch's schedule."""

    def __init__(self, options: ScheduleOptions, bench: Bench, schedule: Schedule, micro_batches: int) -> None:
        self._bench, self._micro_batches = bench, micro_batches
        self._virtual_stages = options.stages_a_rank(schedule)
        layout = Parallel(pipeline=bench.ranks, virtual_stages=self._virtual_stages, schedule=schedule)
        self._work = _work(options, bench, self._virtual_stages)
        self._mine = stages_of(layout, bench.rank)
        rank_of = {stage: rank for rank in range(bench.ranks) for stage in stages_of(layout, rank)}
        stages = [self._stage(index, rank_of) for index in self._mine]
        several = issubclass(SCHEDULES[schedule], PipelineScheduleMulti)
        self._schedule = SCHEDULES[schedule](
            stages if several else stages[0],
            n_microbatches=micro_batches,
            loss_fn=lambda output, _target: output.sum(),
            scale_grads=False,
        )
        self._last = len(rank_of) - 1

    def _stage(self, index: int, rank_of: dict[int, int]) -> PipelineStage:
        neighbours = (rank_of.get(each) for each in (index - 1, index + 1))
        before, after = (None if rank == self._bench.rank else rank for rank in neighbours)
        module = TimedStage(index, self._work, before, after).to(self._bench.device)
        # what messages look like, so that the stages need not try each other out
        shape = torch.empty(MESSAGE, dtype=torch.float64, device="meta", requires_grad=True)
        given = shape.detach() if index == 0 else shape
        return PipelineStage(module, index, len(rank_of), self._bench.device, input_args=(given,), output_args=(shape,))

    def run(self, hurries: bool = False) -> Step:
        """One step, from the moment all ranks are ready, as every rank saw it."""
        given = (self._batch(),) if 0 in self._mine else ()
        more = {"target": self._batch(), "losses": []} if self._last in self._mine else {}
        dist.barrier()
        self._work.start(hurries)
        self._schedule.step(*given, return_outputs=False, **more)
        everybody: list[tuple[Span, ...]] = [()] * self._bench.ranks
        dist.all_gather_object(everybody, whole_backwards(self._work.done))
        return Step(tuple(everybody), self._virtual_stages)

    def _batch(self) -> Tensor:
        """What the first stage is given: micro-batches that are there already, by number."""
        numbers = torch.arange(self._micro_batches, dtype=torch.float64, device=self._bench.device)
        return torch.stack([torch.zeros_like(numbers), numbers], dim=1)


def _work(options: ScheduleOptions, bench: Bench, stages: int) -> Work:
    factor = options.slow_downs(bench.ranks)[bench.rank] / stages
    take_seconds: dict[What, float] = {
        "F": factor * options.forward_seconds,
        "B": factor * options.input_gradient_seconds,
        "W": factor * options.weight_gradient_seconds,
    }
    return Work(take_seconds, options.message_seconds)
