"""Which of an answer's sentences are believed: each is taken one way, as right or as wrong. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from app.grading.rubrics.likeness import Claims
from app.grading.rubrics.matching import MOST_CLAUSES
from app.grading.rubrics.points import PointGrade, rests_on
from app.grading.rubrics.reading import Reading


def believed(points: list[PointGrade], false: Iterable[str], reading: Reading, claims: Claims) -> list[PointGrade]:
    """The grades with every sentence taken one way: it is held to be wrong where it says something `false`, or the
    opposite of a point in so many words, or where that is surmised in an answer whose other sentences are mostly wrong.
    What stands only in wrong sentences is unsure. What is surmised elsewhere to be against a point is missed where its
    sentence shows another, or does not speak of the point's own subject. A text without punctuation is many statements,
    and not taken one way.
    """
    rests = {each.id: rests_on(each.evidence, reading) for each in points}
    met = [each.id for each in points if each.verdict == "met"]
    against = [each for each in points if each.verdict == "contradicted"]
    doubted = [each for each in against if each.surmised and not _is_mostly_wrong(rests[each.id], met, against, rests)]
    wrong = rests_on(false, reading).union(*(rests[each.id] for each in against if each not in doubted))
    wrong = frozenset(each for each in wrong if len(reading.sentences[each].tokens) <= MOST_CLAUSES)
    right = frozenset[int]().union(*(rests[each] for each in met if not rests[each] <= wrong))
    dropped = {
        each.id
        for each in doubted
        if rests[each.id] <= right
        or not any(claims.speaks_of(each.id, reading.sentences[index]) for index in rests[each.id])
    }
    return [_taken(each, rests[each.id] <= wrong, each.id in dropped) for each in points]


def _is_mostly_wrong(
    mine: frozenset[int], met: Iterable[str], against: Iterable[PointGrade], rests: Mapping[str, frozenset[int]]
) -> bool:
    """Whether several points, and more than are met, are contradicted by other sentences than `mine`."""
    right = sum(rests[each].isdisjoint(mine) for each in met)
    return sum(rests[each.id].isdisjoint(mine) for each in against) > max(1, right)


def _taken(grade: PointGrade, is_wrong: bool, is_dropped: bool) -> PointGrade:
    if grade.verdict == "met" and is_wrong:
        return replace(grade, verdict="unsure", credit=0.0)
    return PointGrade(grade.id, "missed", 0.0, ()) if is_dropped else grade
