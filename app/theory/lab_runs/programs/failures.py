"""What theory says of the game of failures, and of a checkpoint's size. How fast a disk is, only a run can say."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, exp

from app.theory.lab_runs.programs.parts import Expected, Point
from app.theory.reliability import checkpoint_bytes, checkpoint_interval_seconds, goodput, lost_fraction
from labs.spec import FailuresOptions, SpecError


def expect(options: FailuresOptions, ranks: int) -> Expected:
    """Goodput and losses by interval (Daly 2006, equation 20), Young's interval, and bytes of each rank's shard."""
    best = checkpoint_interval_seconds(options.checkpoint_seconds, options.mtbf_seconds, "young")
    shards = [checkpoint_bytes(parameters) for parameters in _shards(options.parameters, ranks)]
    sizes = (Point("bytes_by_rank", "written", rank, size) for rank, size in enumerate(shards))
    return Expected(
        points=(*_shares(options), *sizes),
        quantities={
            "best_interval_seconds": best,
            "goodput": goodput(best, options.checkpoint_seconds, options.mtbf_seconds, options.restart_seconds),
            "checkpoint_bytes_per_rank": max(shards),
        },
    )


def _shares(options: FailuresOptions) -> Iterator[Point]:
    """What is lost besides: restarts the first R of every gap, checkpoints δ for each τ of useful work, work the rest.

    A gap between failures, exponential with mean M, is longer than R with probability e^(−R/M), so that the mean of
    what it has of R is M(1 − e^(−R/M)).
    """
    mtbf, checkpoint, restart = options.mtbf_seconds, options.checkpoint_seconds, options.restart_seconds
    for interval in sorted(options.intervals_seconds):
        useful = goodput(interval, checkpoint, mtbf, restart)
        restarts, checkpoints = 1 - exp(-restart / mtbf), useful * checkpoint / interval
        yield Point("goodput", "goodput", interval, useful)
        yield from _first_order(options, interval)
        yield Point("lost", "checkpoints", interval, checkpoints)
        yield Point("lost", "repeated work", interval, 1 - useful - checkpoints - restarts)
        yield Point("lost", "restarts", interval, restarts)


def _first_order(options: FailuresOptions, interval: float) -> Iterator[Point]:
    """The formula to remember, 1 − δ/τ − (τ/2 + R)/M, where it says anything."""
    try:
        lost = lost_fraction(interval, options.checkpoint_seconds, options.mtbf_seconds, options.restart_seconds)
    except SpecError:
        return
    yield Point("goodput", "first order", interval, 1 - lost)


def _shards(parameters: int, ranks: int) -> list[int]:
    """Parameters of each rank, cut as FSDP cuts: shards as long as the first, as far as they go."""
    each = ceil(parameters / ranks)
    return [max(0, min(each, parameters - rank * each)) for rank in range(ranks)]
