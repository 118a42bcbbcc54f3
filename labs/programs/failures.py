"""Failures and the checkpoints against them: a game of chance, and a real checkpoint.

The game. Failures come at random, each as likely now as at any other time (a Poisson process): the times between them
are exponential, M seconds on average. After one the job takes R seconds to be back. It then works for τ seconds, writes
a checkpoint for δ, and so on. When the next failure comes, all since the last whole checkpoint is lost. A short τ loses
time to checkpoints, a long one to work that is done again. Young (1974) and Daly (2006) say which τ loses least; here
it is found by playing.

The checkpoint. Every rank writes its shard of bf16 weights, fp32 master weights and both of Adam's moments, 14 bytes a
parameter: once while training waits (synchronous), and once with training going on as soon as there is a copy in memory
(asynchronous). In a data-parallel job all ranks wait for the slowest in every step, so a stall of one stalls all.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
import torch.distributed as dist
from torch import Tensor

from labs.programs.checkpoints import CheckpointedTraining, Timeline
from labs.programs.fits import fit_parabola
from labs.programs.running import Bench
from labs.spec import FailuresOptions


def measure(options: FailuresOptions, bench: Bench) -> dict[str, float]:
    """The useful share of time by interval and the best one; then times and bytes of a real checkpoint."""
    return {**_play(options, bench), **_write(options, bench)}


# --- the game


@dataclass(frozen=True)
class Shares:
    """What became of a job's time, in shares that add up to 1, and the standard error of `useful`."""

    useful: float
    checkpoints: float
    repeated: float
    restarts: float
    error: float


def play(gaps: Tensor, interval: float, checkpoint: float, restart: float) -> Shares:
    """A job through failures that are `gaps` seconds apart (float64): all times in seconds.

    A gap begins with a failure. The first of it goes into the restart (a failure during that begins another); in what
    is left fit a number of whole rounds, each of `interval` of work and a checkpoint; the rest of it will be repeated.
    """
    restarts = gaps.clamp(max=restart)
    left = gaps - restarts
    rounds = (left / (interval + checkpoint)).floor()
    useful = rounds * interval
    total = gaps.sum()
    share = useful.sum() / total
    # A ratio of two sums: its error is that of the mean of useful − share · gap, in gaps.
    error = (useful - share * gaps).std() / len(gaps) ** 0.5 / gaps.mean()
    parts = (useful, rounds * checkpoint, left - rounds * (interval + checkpoint), restarts)
    useful_share, checkpoints, repeated, restarting = (float(part.sum() / total) for part in parts)
    return Shares(useful_share, checkpoints, repeated, restarting, float(error))


def _play(options: FailuresOptions, bench: Bench) -> dict[str, float]:
    """All intervals face the same failures: so chance does not decide between them."""
    gaps = _failures_of_all_ranks(options, bench)
    intervals = sorted(options.intervals_seconds)
    played = [play(gaps, each, options.checkpoint_seconds, options.restart_seconds) for each in intervals]
    for interval, shares in zip(intervals, played, strict=True):
        bench.point_of_all("goodput", "goodput", interval, shares.useful)
        for name, share in (
            ("checkpoints", shares.checkpoints),
            ("repeated work", shares.repeated),
            ("restarts", shares.restarts),
        ):
            bench.point_of_all("lost", name, interval, share)
    best, goodput = best_interval(intervals, [shares.useful for shares in played])
    error = max(shares.error for shares in played)
    bench.say(
        f"{len(gaps):,} failures, {options.mtbf_seconds:,.0f} s apart on average: goodput is known to ±{error:.1e}"
    )
    bench.say(f"best with {best:,.0f} s of work between checkpoints: {goodput:.2%} of the time is useful")
    return {"best_interval_seconds": best, "goodput": goodput}


def _failures_of_all_ranks(options: FailuresOptions, bench: Bench) -> Tensor:
    """Each rank draws failures of its own, from a seed of its own: seconds between them, those of all ranks."""
    generator = torch.Generator().manual_seed(bench.seed * 1_000_003 + bench.rank)
    mine = torch.empty(options.failures, dtype=torch.float64)
    mine = mine.exponential_(1 / options.mtbf_seconds, generator=generator).to(bench.device)
    everybody = torch.empty(bench.ranks * options.failures, dtype=torch.float64, device=bench.device)
    dist.all_gather_single(everybody, mine)
    return everybody.cpu()


def best_interval(intervals: list[float], goodputs: list[float]) -> tuple[float, float]:
    """The interval between those played, which rise, where goodput would be highest, and that goodput.

    Around its best point goodput over log τ is nearly a parabola: so one is laid through the best that was played and
    its neighbours. At an end of the list there are none on one side, and the best played has to do.
    """
    at = max(range(len(intervals)), key=goodputs.__getitem__)
    if not 0 < at < len(intervals) - 1:
        return intervals[at], goodputs[at]
    near, lost = intervals[at - 1 : at + 2], [1 - goodput for goodput in goodputs[at - 1 : at + 2]]
    parabola = fit_parabola(near, lost)
    lowest = parabola.lowest_within(near[0], near[-1])
    return (intervals[at], goodputs[at]) if lowest is None else (lowest, 1 - parabola(lowest))


# --- the checkpoint

_KINDS = {"synchronous": True, "asynchronous": False}  # whether training waits until all is written


def _write(options: FailuresOptions, bench: Bench) -> dict[str, float]:
    with CheckpointedTraining(options.parameters, options.steps, bench.device) as training:
        for wait in (True, False):  # the first of each kind also sets up what later ones find
            training.run(f"warm-up-{wait}", wait)
        waiting, going_on = (_of_all(training.run(name, wait), bench) for name, wait in _KINDS.items())
        written = training.bytes_written("synchronous")
    bench.point("bytes_by_rank", "written", bench.rank, written)
    for name, timeline in (("synchronous", waiting), ("asynchronous", going_on)):
        for step, seconds in enumerate(timeline.step_seconds, start=1):
            bench.point_of_all("stall", name, step, seconds)
        bench.say(f"{name}: {_in_words(timeline)}")
    (largest_written,) = bench.largest([written])
    return {
        "checkpoint_bytes_per_rank": largest_written,
        "write_seconds": waiting.blocked_seconds,
        "sync_stall_seconds": waiting.lost_seconds,
        "async_stall_seconds": going_on.lost_seconds,
        "async_blocked_seconds": going_on.blocked_seconds,
    }


def _of_all(timeline: Timeline, bench: Bench) -> Timeline:
    """The job's: a step is over when the slowest rank's is. Collective."""
    *steps, done, blocked, written_after = bench.largest(
        [*timeline.step_seconds, timeline.done_step, timeline.blocked_seconds, timeline.written_after_seconds]
    )
    return replace(
        timeline,
        step_seconds=steps,
        done_step=int(done),
        blocked_seconds=blocked,
        written_after_seconds=written_after,
    )


def _in_words(timeline: Timeline) -> str:
    return (
        f"training stood still for {timeline.blocked_seconds:.3f} s, and lost {timeline.lost_seconds:.3f} s in all "
        f"until the checkpoint was there, {timeline.written_after_seconds:.3f} s after it was begun"
    )
