"""The level of a sitting: its points give it, and what was not shown holds it. Pure.

The points say how much was right in the end. Whoever decides on somebody asks two things more: how much of it came
without help, and whether what was asked says enough to vouch for. The table of both is `app.grading.levels`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from app.grading import levels
from app.grading.levels import Level
from app.interview.criteria import Criterion, criteria
from app.interview.rows import NOT_ASKED, Row
from app.words import counted, listed


@dataclass(frozen=True)
class Decision:
    """A level, what the points alone would give, and why it is held below that, as a sentence goes on after “because”;
    nothing where it is not."""

    level: Level
    by_points: Level
    held: tuple[str, ...] = ()


def decide(rows: Sequence[Row], score: float) -> Decision:
    """The level of a sitting whose rows came to `score`, 0 to 1."""
    by_points = levels.level_of(score)
    unaided, held = unaided_share(rows), list[str]()
    level = levels.lower(by_points, levels.unaided_cap(unaided))
    if level != by_points:
        held.append(f"only {levels.percent(unaided)} % of the points came without being asked about")
    if level == "strong hire" and (lacking := list(_lacking(rows, criteria(rows)))):
        level, held = levels.STRONG_CAP, lacking
    return Decision(level, by_points, tuple(held))


def unaided_share(rows: Sequence[Row]) -> float:
    """The share of the points that was reached without being asked about, 0 to 1."""
    return levels.share(sum(row.reached - row.gained for row in rows), sum(row.points for row in rows))


def _lacking(rows: Sequence[Row], rated: Sequence[Criterion]) -> Iterator[str]:
    """What keeps a sitting from vouching for somebody."""
    unrated = [each.title.lower() for each in rated if each.level is None]
    if len(rated) - len(unrated) < levels.STRONG_RATED:
        yield f"hardly anything here asks for {listed(unrated, 'or')}"
    weak = [each.title.lower() for each in rated if each.level and levels.is_at_least(levels.CAP, each.level)]
    if len(weak) > levels.STRONG_WEAK:
        yield f"{listed(weak)} are at lean no hire or below"
    if not any(_is_own_number(row) for row in rows):
        yield "no number was worked out without help"
    false = [each for row in rows for each in row.challenged if each.outcome != NOT_ASKED and not each.is_taken_back]
    held = dict.fromkeys(each.topic for each in false)
    kept = dict.fromkeys(point.topic for row in rows for point, _ in row.kept if point.topic)
    if held:
        yield f"what was said of {listed(list(held))} is false, and was not taken back when asked"
    elif kept:
        yield f"the opposite of what is so was heard on {listed(list(kept))}, and kept when asked"
    failed = sum(row.kind == "coding" and row.is_evidence and row.verdict != "right" for row in rows)
    if failed:
        yield f"{counted(failed, 'program')} {'does' if failed == 1 else 'do'} not pass"


def _is_own_number(row: Row) -> bool:
    """Whether a row shows a right number that its candidate came to: worked out, or said in words."""
    if row.kind == "text":
        return any(point.credit and any(map(str.isdigit, " ".join(point.evidence))) for point in row.rubric)
    return row.kind in ("number", "configuration", "layout") and row.verdict == "right" and not row.hints
