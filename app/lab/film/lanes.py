"""The watched steps of several runs above each other: the film strip's lanes over one axis, and where their time went.

It is the film's step: what is busy, what is a pass and what a collective is decided in one place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from app.content.film.axis import Axis
from app.content.film.shown import Lane
from app.lab.film.expected import expected
from app.lab.film.pieces import RankStep, Step, covered, merged, without
from app.lab.film.strip import lane_of
from app.lab.film.words import Words, milliseconds
from app.units import digits
from labs.spec import RunSpec

# In the order in which they are stacked. The last three are all standing still.
TERMS: Mapping[str, str] = {
    "forward": "Forward",
    "backward": "Backward",
    "weight": "Weight gradients",
    "optimizer": "Optimizer",
    "communication": "Communication that nothing hides",
    "waiting": "Waiting in collectives for the last rank",
    "idle": "Standing still besides",
}


@dataclass(frozen=True)
class Strip:
    """One run's watched step. `until` is where it ends on the shared axis, in percent; `terms` are seconds, of the mean
    rank, and add up to the step; `by_rank` has them of each rank, which `passes` says in words."""

    number: int
    seconds: float
    says: str
    lanes: tuple[Lane, ...]
    until: str
    terms: Mapping[str, float]
    by_rank: tuple[Mapping[str, float], ...]
    passes: tuple[tuple[str, ...], ...]


def strip_beside(spec: RunSpec, step: Step, longest_seconds: float) -> Strip:
    """A step as lanes on the axis of the longest of those it stands beside."""
    axis, words = Axis(longest_seconds), Words(spec, step)
    schedule = expected(spec, step)
    by_rank = tuple(_terms(rank, step.seconds, words) for rank in step.ranks)
    still = 1 - sum(rank.busy_seconds for rank in step.ranks) / (len(step.ranks) * step.seconds)
    return Strip(
        step.number,
        step.seconds,
        f"Step {step.number}, {milliseconds(step.seconds)}; ranks stand still {digits(100 * still, 3)} % of it.",
        tuple(lane_of(each, words, schedule, step, axis) for each in step.ranks),
        axis.percent(step.seconds),
        {name: sum(each[name] for each in by_rank) / len(by_rank) for name in TERMS},
        by_rank,
        tuple(
            (f"Rank {rank.rank}", *map(milliseconds, terms.values()))
            for rank, terms in zip(step.ranks, by_rank, strict=True)
        ),
    )


def _terms(rank: RankStep, seconds: float, words: Words) -> dict[str, float]:
    """Seconds of the step by what the rank did. Where one collective waits while another is under way, that is
    communication."""
    found = dict.fromkeys(TERMS, 0.0)
    for tone, start, end in rank.busy:
        found[tone] += end - start
    spans = [words.waits_and_moves(piece) for piece in rank.moved]
    moving = merged(moves for _, moves in spans)
    either = merged(span for both in spans for span in both)
    still = without((0.0, seconds), ((start, end) for _, start, end in rank.busy))
    found["communication"] = sum(covered(each, moving) for each in still)
    found["waiting"] = max(0.0, sum(covered(each, either) for each in still) - found["communication"])
    known = found["communication"] + found["waiting"]
    found["idle"] = max(0.0, sum(end - start for start, end in still) - known)
    return found
