"""What the `schedule` program should measure: every schedule played out by the simulator, with the times it asks for.

With equal ranks and no time on the way that is what the closed forms say (F22 to F25). One schedule is slower than
this, by some per cent: torch sends the results of dualpipev's overlapped pairs when both of a pair are done.
"""

from __future__ import annotations

from collections.abc import Iterator

from app.theory.lab_runs.programs.parts import Expected, Point
from app.theory.pipeline import ChunkSeconds, Order, PipelineRun, order, simulate_pipeline, split_backwards
from labs.spec import Schedule, ScheduleOptions


def expect(options: ScheduleOptions, ranks: int) -> Expected:
    """Idle shares, durations and micro-batches in flight of every schedule; of the drawn one as quantities."""
    drawn = played(options, ranks, options.schedule, options.micro_batches[-1])
    quantities = {
        "bubble_fraction": drawn.idle_fraction,
        "step_seconds": drawn.step_seconds,
        "in_flight": drawn.peak_in_flight[0] / options.stages_a_rank(options.schedule),
    }
    return Expected(tuple(_points(options, ranks)), quantities)


def played(options: ScheduleOptions, ranks: int, schedule: Schedule, micro_batches: int) -> PipelineRun:
    """A step of the program as it should go."""
    stages = options.stages_a_rank(schedule)
    passes = order(schedule, ranks, micro_batches, stages)
    seconds = _chunk_seconds(options, passes, ranks * stages, stages)
    return simulate_pipeline(passes, seconds, options.message_seconds, options.slow_downs(ranks))


def _points(options: ScheduleOptions, ranks: int) -> Iterator[Point]:
    for schedule in options.schedules:
        for micro_batches in options.micro_batches:
            run = played(options, ranks, schedule, micro_batches)
            yield Point("bubble", schedule, micro_batches, run.idle_fraction)
            yield Point("step", schedule, micro_batches, run.step_seconds)
        for rank, chunks in enumerate(run.peak_in_flight):
            yield Point("in_flight", schedule, rank, chunks / options.stages_a_rank(schedule))


def _chunk_seconds(options: ScheduleOptions, passes: Order, chunks: int, stages_a_rank: int) -> list[ChunkSeconds]:
    """Of every stage along the model. Nobody waits for the first one's input gradient: where a schedule splits its
    backward, torch computes both gradients in W."""
    forward, gradient, weight = (
        seconds / stages_a_rank
        for seconds in (options.forward_seconds, options.input_gradient_seconds, options.weight_gradient_seconds)
    )
    each = ChunkSeconds(forward, gradient, weight)
    splits_first = any(chunk == 0 for chunk, _ in split_backwards(passes[0]))
    first = ChunkSeconds(forward, 0.0, gradient + weight) if splits_first else each
    return [first] + [each] * (chunks - 1)
