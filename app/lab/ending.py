"""How a failed run ended: how far each rank came, and what the ranks said last, the first of them first. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.core.charts import Scale, round_scale
from app.core.texts import without_pictures
from app.lab.records import RunFailure
from app.lab.view import RunView
from app.units import seconds_text
from labs.spec import RunSpec
from labs.spec.events import LogEvent


@dataclass(frozen=True)
class EndedRank:
    """A rank's lane: the whole steps behind it, and where in the one after it ended for itself; all in percent."""

    rank: int
    done: str
    failed_at: str  # empty where it ended for want of another
    says: str


@dataclass(frozen=True)
class LastWords:
    """A rank's last line, and how long after the first of these lines it came."""

    rank: int
    line: str
    after: str


@dataclass(frozen=True)
class Ending:
    """`steps_done` are steps that all ranks finished."""

    steps: int
    steps_done: int
    lanes: tuple[EndedRank, ...]
    scale: Scale
    words: tuple[LastWords, ...]
    silent: tuple[int, ...]  # ranks without a last word after the first


def ending_of(spec: RunSpec, view: RunView, failure: RunFailure | None) -> Ending | None:
    """None where no rank is to blame, or the run takes no steps."""
    if failure is None or failure.rank is None or spec.options is not None:
        return None
    steps, done = spec.training.steps, view.steps_done
    scale = round_scale(steps, "steps")
    lanes = tuple(
        EndedRank(
            rank,
            scale.percent(done),
            scale.percent(max(done, (failure.step or done + 1) - 0.5)) if rank == failure.rank else "",
            f"{failure.cause}, step {failure.step or done + 1}" if rank == failure.rank else "ended with it",
        )
        for rank in range(spec.parallel.world_size)
    )
    words = _last_words(view.log, failure)
    silent = tuple(sorted(set(range(spec.parallel.world_size)) - {each.rank for each in words}))
    return Ending(steps, done, lanes, scale, words, silent)


def _last_words(log: Sequence[LogEvent], failure: RunFailure) -> tuple[LastWords, ...]:
    """The line of the rank that is to blame, and the last of each other rank after it; none where it said nothing."""
    last = {each.rank: each for each in log if any(letter.isalpha() for letter in each.line)}
    first = last.get(failure.rank) if failure.rank is not None else None
    if first is None or failure.lines_rank != failure.rank:
        return ()
    after = sorted((each for each in last.values() if each is not first and each.t >= first.t), key=lambda each: each.t)
    rest = (LastWords(each.rank, without_pictures(each.line), _later(each.t - first.t)) for each in after)
    return (LastWords(first.rank, without_pictures(first.line), "first"), *rest)


def _later(seconds: float) -> str:
    return f"{seconds_text(seconds, 2)} later"
