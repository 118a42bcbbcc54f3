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
from typing import Literal

from app.grading.rubrics.likeness import Likeness
from app.grading.rubrics.nearness import Nearness
from app.grading.rubrics.reading import Sentence

Weights = Mapping[str, Sequence[float]]  # of what is found, what it is worth for each verdict
Weighed = Literal["met", "missed", "contradicted"]
VERDICTS: tuple[Weighed, ...] = ("met", "missed", "contradicted")

SURE = 0.5  # the chance from which on a verdict is taken instead of another one
SURE_OF_THE_FIRST = 0.85  # … where it would be the only thing in an answer that is wrong
DOUBTFUL = 0.2  # … and from which on a point that is not met may yet be: a person decides
WELL_MET = 0.4  # … although it seems to be contradicted
LEANS = 0.25  # from this chance of being contradicted on a point is not met that is no likelier met than not
ABOUT = 0.1  # the likeness from which on a statement counts as being about a point
CLEARLY_RIGHT, RATHER_WRONG = 0.1, 0.05  # how much more like right claims than wrong ones, and the other way round
WHOLE = 0.05  # how much more like what is right than like what is half of it, to be all of it
NOTHING = -0.2  # what stands for how much more where no statement is about a point


@dataclass(frozen=True)
class Heard:
    """What one look says of a point: `verdict` and `credit` as of a grade, and whether the verdict is only surmised."""

    verdict: Literal["met", "missed", "contradicted", "unsure"]
    credit: float = 0.0
    surmised: bool = False
    sentences: frozenset[int] = frozenset()

    @property
    def is_whole(self) -> bool:
        return self.verdict == "met" and self.credit == 1.0

    @property
    def is_half(self) -> bool:
        return self.verdict == "met" and self.credit < 1.0


@dataclass(frozen=True)
class Looks:
    """What the evidence says of each point, what comparing with known claims made of it, and what was believed then."""

    evidence: Mapping[str, Heard]
    compared: Mapping[str, Heard]
    believed: Mapping[str, Heard]


@dataclass(frozen=True)
class Statements:
    """What is stated in an answer: how like and how near its statements are to known claims about each point."""

    likenesses: Mapping[str, Sequence[Likeness]]
    nearnesses: Mapping[str, Sequence[Nearness]]
    sentences: Sequence[Sentence]

    def like(self, point: str) -> Sequence[Likeness]:
        return self.likenesses.get(point, ())

    def claimed(self, point: str) -> list[Likeness]:
        """Without those that refute something: they are like what they refute."""
        return [each for each in self.like(point) if not self.sentences[each.sentence].refutes]

    def more_right(self, point: str) -> float:
        """How much more like right claims than like wrong ones the statement is for which that is most."""
        return max((each.right - each.wrong for each in self.like(point) if each.right > ABOUT), default=NOTHING)

    def more_wrong(self, point: str) -> float:
        return max((each.excess for each in self.claimed(point) if each.wrong > ABOUT), default=NOTHING)

    def for_it(self, point: str) -> tuple[int, ...]:
        """The sentences that are most for a point."""
        most = max(self.like(point), key=lambda each: each.right - max(each.wrong, 0.0), default=None)
        return tuple(most.sentences) if most else ()

    def against_it(self, point: str) -> tuple[int, ...]:
        """The sentences that are most against a point."""
        most = max(self.claimed(point), key=lambda each: each.excess, default=None)
        return tuple(most.sentences) if most else ()

    def is_half(self, point: str) -> bool:
        """Whether what is most for a point is rather what is half of it, or vague."""
        most = max(self.like(point), key=lambda each: each.right - max(each.wrong, 0.0), default=None)
        return (
            most is None or most.half + WHOLE >= most.right or any(self.sentences[at].is_vague for at in most.sentences)
        )


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
    nearest = near[0] if near else Nearness(0, 0, 0.0, 0.0, 0.0)
    is_met = evidence.verdict == "met"
    rests = [each.lean for each in near if not evidence.sentences.isdisjoint(each.sentences)]
    like_wrong = _share(more[each][1] > RATHER_WRONG for each in others)
    return {
        "always": 1.0,
        "evidence: met": float(evidence.is_whole),
        "evidence: half met": float(evidence.is_half),
        "evidence: unsure": float(evidence.verdict == "unsure"),
        "evidence: contradicted": float(evidence.verdict == "contradicted" and not evidence.surmised),
        "evidence: contradicted, as is surmised": float(evidence.verdict == "contradicted" and evidence.surmised),
        "compared: met": float(compared.verdict == "met"),
        "compared: contradicted": float(compared.verdict == "contradicted"),
        "believed: half met": float(believed.is_half),
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
