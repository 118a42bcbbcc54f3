"""The watched steps of several runs above each other: the film strip's lanes over one axis, and where their time went.

It is the film's step: what is busy, what is a pass and what a collective is decided in one place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.content.film.axis import Axis
from app.content.film.shown import Lane
from app.lab.film.expected import expected
from app.lab.film.pieces import RankStep, Step, covered, merged, without
from app.lab.film.strip import lane_of
from app.lab.film.words import Words, milliseconds
from app.units import digits
from labs.spec import RunSpec

# In the order in which they are stacked. What nothing hides and what is left over are both standing still.
TERMS: Mapping[str, str] = {
    "forward": "Forward",
    "backward": "Backward",
    "weight": "Weight gradients",
    "optimizer": "Optimizer",
    "communication": "Communication that nothing hides",
    "idle": "Standing still besides",
}


@dataclass(frozen=True)
class Strip:
    """One run's watched step. `until` is where it ends on the shared axis, in percent; `terms` are seconds, of the mean
    rank, and add up to the step."""

    number: int
    seconds: float
    says: str
    lanes: tuple[Lane, ...]
    until: str
    terms: Mapping[str, float]
    passes: tuple[tuple[str, ...], ...]


def strip_beside(spec: RunSpec, step: Step, longest_seconds: float) -> Strip:
    """A step as lanes on the axis of the longest of those it stands beside."""
    axis, words = Axis(longest_seconds), Words(spec, step)
    schedule = expected(spec, step)
    terms = terms_of(step)
    still = 1 - sum(rank.busy_seconds for rank in step.ranks) / (len(step.ranks) * step.seconds)
    return Strip(
        step.number,
        step.seconds,
        f"Step {step.number}, {milliseconds(step.seconds)}; ranks stand still {digits(100 * still, 3)} % of it.",
        tuple(lane_of(each, words, schedule, step, axis) for each in step.ranks),
        axis.percent(step.seconds),
        terms,
        tuple((f"Rank {rank.rank}", *_row(rank, step.seconds)) for rank in step.ranks),
    )


def terms_of(step: Step) -> dict[str, float]:
    """Seconds of the step by what its mean rank did."""
    every = [_terms(rank, step.seconds) for rank in step.ranks]
    return {name: sum(each[name] for each in every) / len(every) for name in TERMS}


def _terms(rank: RankStep, seconds: float) -> dict[str, float]:
    found = dict.fromkeys(TERMS, 0.0)
    for tone, start, end in rank.busy:
        found[tone] += end - start
    under_way = merged((piece.start, piece.end) for piece in rank.moved)
    still = without((0.0, seconds), ((start, end) for _, start, end in rank.busy))
    found["communication"] = sum(covered(each, under_way) for each in still)
    found["idle"] = max(0.0, sum(end - start for start, end in still) - found["communication"])
    return found


def _row(rank: RankStep, seconds: float) -> Sequence[str]:
    return [milliseconds(value) for value in _terms(rank, seconds).values()]
