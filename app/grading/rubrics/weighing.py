"""A last look at each point: all that speaks for and against it, weighed together by a logistic regression.

Evidence is words that somebody thought of, likeness and nearness are of claims that somebody wrote; each is wrong where
the other often is not, and an answer whose other points are right is believed more. How much each is worth is not a
matter of taste: the weights are fitted on answers with labels (`tests/support/weights.py`), and docs/grading.md says
what they give on authors that were left out. Only what is likelier than not changes a verdict.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from app.grading.rubrics.likeness import Claims, Likeness
from app.grading.rubrics.nearness import NOWHERE, Nearness, nearnesses
from app.grading.rubrics.points import PointGrade, rests_on
from app.grading.rubrics.reading import Reading, Sentence

Weights = Mapping[str, Sequence[float]]  # of what is found, what it is worth for each verdict
Weighed = Literal["met", "missed", "contradicted"]
VERDICTS: tuple[Weighed, ...] = ("met", "missed", "contradicted")

SURE = 0.5  # the chance from which on a verdict is taken instead of another one
ABOUT = 0.1  # the likeness from which on a statement counts as being about a point
CLEARLY_RIGHT, RATHER_WRONG = 0.1, 0.05  # how much more like right claims than wrong ones, and the other way round
NOTHING = -0.2  # what stands for how much more where no statement is about a point


@dataclass(frozen=True)
class Looks:
    """What the evidence says of each point, what comparing with known claims made of it, and what was believed then."""

    evidence: Mapping[str, PointGrade]
    compared: Mapping[str, PointGrade]
    believed: Mapping[str, PointGrade]


@dataclass(frozen=True)
class Statements:
    """What is stated in an answer: how like and how near its statements are to known claims about each point."""

    reading: Reading
    claims: Claims
    likenesses: Mapping[str, Sequence[Likeness]]

    @cached_property
    def nearnesses(self) -> Mapping[str, Sequence[Nearness]]:
        """How near every statement comes to each point, the nearest first."""
        return nearnesses(self.claims, self.reading)

    def is_about(self, point: str, sentences: frozenset[int]) -> bool:
        """Whether any of `sentences` is nearer to a point than to every other; of one without claims any is."""
        near = self.nearnesses.get(point)
        return near is None or any(
            each.count == 1 and each.sentence in sentences and each.of_most == 1.0 for each in near
        )

    def like(self, point: str) -> Sequence[Likeness]:
        return self.likenesses.get(point, ())

    def claimed(self, point: str) -> list[Likeness]:
        """Without those that refute something: they are like what they refute."""
        return [each for each in self.like(point) if not self.reading.sentences[each.sentence].refutes]

    def more_right(self, point: str) -> float:
        """How much more like right claims than like wrong ones the statement is for which that is most."""
        return max((each.right - each.wrong for each in self.like(point) if each.right > ABOUT), default=NOTHING)

    def more_wrong(self, point: str) -> float:
        return max((each.excess for each in self.claimed(point) if each.wrong > ABOUT), default=NOTHING)

    def for_it(self, point: str) -> Likeness | None:
        """The statement that is most for a point."""
        return max(self.like(point), key=lambda each: each.right - each.wrong, default=None)

    def against_it(self, point: str) -> Likeness | None:
        """The statement that is most against a point."""
        return max(self.claimed(point), key=lambda each: each.excess, default=None)

    def said_in(self, statement: Likeness) -> list[Sentence]:
        return [self.reading.sentences[at] for at in statement.sentences]


@dataclass(frozen=True)
class Chances:
    """How likely each verdict on a point is; they add up to 1."""

    met: float
    missed: float
    contradicted: float

    @property
    def likely(self) -> Weighed | None:
        """The verdict that is likelier than not."""
        return next((each for each in VERDICTS if getattr(self, each) > SURE), None)


def chances(looks: Looks, said: Statements, weights: Weights) -> Mapping[str, Chances]:
    """How likely each verdict on each point is, by all that speaks for and against it."""
    features = features_of(looks, said)
    return {point: _chances(each, weights) for point, each in features.items()}


def _chances(seen: Mapping[str, float], weights: Weights) -> Chances:
    sums = [sum(seen[name] * each[at] for name, each in weights.items()) for at in range(len(VERDICTS))]
    shares = [math.exp(each - max(sums)) for each in sums]
    return Chances(*(each / sum(shares) for each in shares))


def features_of(looks: Looks, said: Statements) -> Mapping[str, Mapping[str, float]]:
    """For each point what speaks for and against it, by the names that weights go by."""
    more = {point: (said.more_right(point), said.more_wrong(point)) for point in looks.evidence}
    return {point: _features(point, looks, said, more) for point in looks.evidence}


def _features(
    point: str, looks: Looks, said: Statements, more: Mapping[str, tuple[float, float]]
) -> Mapping[str, float]:
    evidence, compared, believed = looks.evidence[point], looks.compared[point], looks.believed[point]
    others = [each for each in looks.evidence if each != point]
    near = said.nearnesses.get(point, ())
    nearest = near[0] if near else NOWHERE
    is_met = evidence.verdict == "met"
    places = rests_on(evidence.evidence, said.reading)
    rests = [each.lean for each in near if not places.isdisjoint(each.sentences)]
    like_wrong = _share(more[each][1] > RATHER_WRONG for each in others)
    return {
        "always": 1.0,
        "evidence: met": float(is_met and evidence.credit == 1.0),
        "evidence: half met": float(is_met and evidence.credit < 1.0),
        "evidence: unsure": float(evidence.verdict == "unsure"),
        "evidence: contradicted": float(evidence.verdict == "contradicted" and not evidence.surmised),
        "evidence: contradicted, as is surmised": float(evidence.verdict == "contradicted" and evidence.surmised),
        "compared: met": float(compared.verdict == "met"),
        "compared: contradicted": float(compared.verdict == "contradicted"),
        "believed: half met": float(believed.verdict == "met" and believed.credit < 1.0),
        "believed: contradicted": float(believed.verdict == "contradicted"),
        "believed: unsure": float(believed.verdict == "unsure"),
        "like right": max((each.right for each in said.like(point)), default=0.0),
        "like half": max((each.half for each in said.like(point)), default=0.0),
        "like wrong": max((each.wrong for each in said.claimed(point)), default=0.0),
        "more like right than wrong": max(0.0, more[point][0]),
        "more like wrong than right": more[point][1],
        "near": nearest.share,
        "near, of the nearest point": nearest.of_most,
        "lean": nearest.lean,
        "lean, without evidence": 0.0 if is_met else nearest.lean,
        "lean of the evidence": max(rests, default=0.0) if is_met else 0.0,
        "others met by evidence": _share(looks.evidence[each].verdict == "met" for each in others),
        "others contradicted by evidence": _share(looks.evidence[each].verdict == "contradicted" for each in others),
        "others believed met": _share(looks.believed[each].verdict == "met" for each in others),
        "others believed contradicted": _share(looks.believed[each].verdict == "contradicted" for each in others),
        "others like right": _share(more[each][0] > CLEARLY_RIGHT for each in others),
        "others like wrong": like_wrong,
        "others like wrong, without evidence": 0.0 if is_met else like_wrong,
    }


def _share(of: Iterable[bool]) -> float:
    found = list(of)
    return sum(found) / max(1, len(found))
