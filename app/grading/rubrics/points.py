"""A point of a rubric, and what became of it in an answer."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from app.grading.rubrics.courses import Course
from app.grading.rubrics.matching import place
from app.grading.rubrics.patterns import Pattern, Value
from app.grading.rubrics.reading import Reading, Sentence

Verdict = Literal["met", "missed", "contradicted", "unsure"]
Judgement = Literal["met", "half met", "missed"]  # what a person decides of a point …

CREDITS: Mapping[Judgement, float] = {"met": 1.0, "half met": 0.5, "missed": 0.0}  # … and what that earns of it


@dataclass(frozen=True)
class Part:
    """One part of a compound point; any of its patterns shows it."""

    patterns: tuple[Pattern, ...]


@dataclass(frozen=True)
class Point:
    """One thing a full answer says. Compound points have `parts`, of which `needs` earn it and `half_at` earn half.

    `course` is what becomes of what it is about, where it says one such thing.
    """

    id: str
    weight: int
    met: tuple[Pattern, ...] = ()
    half: tuple[Pattern, ...] = ()
    against: tuple[Pattern, ...] = ()
    parts: tuple[Part, ...] = ()
    needs: int = 0
    half_at: int = 0
    course: Course | None = None

    @property
    def evidence(self) -> tuple[Pattern, ...]:
        """All that earns it, or half of it."""
        return (*self.met, *self.half, *(pattern for part in self.parts for pattern in part.patterns))

    @property
    def is_bound(self) -> bool:
        """Whether its numbers are those of one of several things, so that words and numbers alone do not show it."""
        return any(value.rivals for value in values_of(self.evidence))

    @cached_property
    def figures(self) -> tuple[Value, ...]:
        """The numbers of which one has to be said, where nothing earns it without: which rank it was."""
        wanted = [tuple(values_of((each,))) for each in (*self.met, *self.half)]
        return tuple(value for each in wanted for value in each) if wanted and all(wanted) else ()


def values_of(evidence: Iterable[Pattern]) -> Iterator[Value]:
    """The numbers that stand in evidence."""
    groups = (group for each in evidence for place in each.places for group in place)
    return (atom for group in groups for atom in group if isinstance(atom, Value))


@dataclass(frozen=True)
class PointGrade:
    """What became of a point: `credit` is 0, 0.5 or 1, `evidence` the sentences it rests on.

    It is `surmised` to be contradicted where no falsehood stands there in so many words, but another number or subject,
    or what is like wrong claims. It is `doubted` to be met, or contradicted, where its words may as well say something
    else.
    """

    id: str
    verdict: Verdict
    credit: float
    evidence: tuple[str, ...]
    surmised: bool = False
    doubted: bool = False


def may_be_met(point: Point, said: Iterable[Sentence]) -> bool:
    """Whether words alone can show a point, or the numbers that it wants stand with them."""
    if point.is_bound:
        return False
    return not point.figures or any(place((point.figures,), each) for each in said)


def rests_on(evidence: Iterable[str], reading: Reading) -> frozenset[int]:
    """Which sentences evidence is made of."""
    texts = tuple(evidence)
    return frozenset(
        index for index, sentence in enumerate(reading.sentences) if any(sentence.text in each for each in texts)
    )


def as_judged(grade: PointGrade, judged: Mapping[str, Judgement], false: Collection[str] = frozenset()) -> PointGrade:
    """A grade after what a person decided: a point that something was heard of is met, half met or missed as they say.
    What is known to be `false` nobody makes met: that it is the opposite stays, or is taken back."""
    if grade.verdict == "missed" or grade.id not in judged:
        return grade
    decision = judged[grade.id]
    if decision == "missed":
        return PointGrade(grade.id, "missed", 0.0, grade.evidence)
    if grade.verdict == "contradicted" and not set(grade.evidence).isdisjoint(false):
        return grade
    return PointGrade(grade.id, "met", CREDITS[decision], grade.evidence)


def taken_back(
    words: str, points: Iterable[tuple[str, Verdict, Collection[str]]], judged: Mapping[str, Judgement]
) -> bool:
    """Whether a person says that they meant something else by `words`: they judged a point, known by its id, its
    verdict and its evidence, that these words were taken for. To stay with what is false is no such judgement."""
    return any(
        point in judged
        and (judged[point] == "missed" or verdict != "contradicted")
        and any(words in each or each in words for each in evidence)
        for point, verdict, evidence in points
    )
