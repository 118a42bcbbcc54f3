"""A closed sitting beside the candidate's earlier ones of the same interview. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from app.grading.levels import Level
from app.interview.criteria import Criterion
from app.interview.rows import NOT_ASKED, Row
from app.interview.scorecards import Scorecard

MOST_EARLIER = 3  # what a phone shows beside this one


@dataclass(frozen=True)
class Before:
    """An earlier sitting as it was rated."""

    id: int
    started_at: datetime
    card: Scorecard
    criteria: tuple[Criterion, ...]

    @property
    def level(self) -> Level | None:
        return self.card.level

    def score_of(self, criterion: str) -> float | None:
        """What a criterion came to; None where the sitting hardly asked for it."""
        return next((each.score for each in self.criteria if each.id == criterion), None)


@dataclass(frozen=True)
class Learned:
    """What of one part was missed in the sitting before and is met now: its points in words, else the part itself."""

    part: str
    title: str
    points: tuple[str, ...]


def learned(before: Scorecard, now: Scorecard) -> tuple[Learned, ...]:
    """What was missed before and is met now. What either sitting did not ask is neither."""
    return tuple(_learned({row.id: row for row in before.rows}, now.rows))


def _learned(before: Mapping[str, Row], now: Sequence[Row]) -> Iterator[Learned]:
    wrong = {row.question for row in now if not row.is_follow_up and row.verdict != "right"}
    for row in now:
        then = before.get(row.id)
        if then is None or not row.points:
            continue
        if row.kind != "text":
            if row.own_key or (row.is_follow_up and row.question in wrong):
                continue  # right after what is wrong
            if row.verdict == "right" and then.lost > 0 and then.verdict not in ("right", NOT_ASKED):
                yield Learned(row.id, row.title, ())
            continue
        missed = {point.id for point in then.rubric if not point.counts}
        if points := tuple(each.point for each in row.rubric if each.id in missed and each.counts):
            yield Learned(row.id, row.title, points)
