"""What becomes of a point when its statements are compared with known claims about it.

Evidence that was found stands, unless the answer gives no reason to believe it: few other points of it are right, or
some are wrong. Then it falls where what it rests on is more like wrong claims than like right ones, and where that is
like no right claim it is half of the point at most, or nothing where much else is wrong: its words alone are there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from app.grading.rubrics.likeness import Likeness, Place
from app.grading.rubrics.reading import Sentence

# From this likeness on a statement is a known claim …
LIKE_WRONG = 0.43
LIKE_WRONG_WHERE_DOUBTED = 0.23  # … in an answer that gets other points wrong
# … and by this much more than it is one to the contrary.
CLEARLY, RATHER = 0.1, 0.05
ABOUT = 0.7  # a statement is about a point from this share of its greatest likeness to right claims on
# Of the other points that an answer decides, with one half added on both sides, this share is wrong: it is doubted …
DOUBTED = 0.3
MOSTLY_WRONG = 0.6  # … and not believed


@dataclass(frozen=True)
class Bounds:
    """From which likeness on a statement is a right claim, and a wrong one although it has evidence; and below which it
    is no claim that is known to be right: that takes as many claims as rubrics have."""

    right: float
    wrong_against_evidence: float
    unlike_right: float = 0.0
    refused: float = 0.12  # from here on a statement has the words of a right claim, and calls them unnecessary


TO_A_RUBRIC = Bounds(0.23, 0.27, 0.12, 0.3)
IN_AN_ANSWER = Bounds(0.23, 0.27)
IN_A_REPLY = Bounds(0.17, 1.0)  # to a question about the point: evidence stands, for nothing else speaks against it


@dataclass(frozen=True)
class Standing:
    """What the evidence says of a point, and the sentences it rests on."""

    verdict: Literal["met", "contradicted", "open"]
    sentences: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Opinion:
    """What comparing says of a point instead, and its sentences; `credit` as of a grade."""

    verdict: Literal["met", "contradicted", "unsure"]
    credit: float
    sentences: tuple[int, ...]


def compare(
    standings: Mapping[str, Standing],
    likenesses: Mapping[str, Sequence[Likeness]],
    sentences: Sequence[Sentence],
    bounds: Bounds = IN_AN_ANSWER,
) -> Mapping[str, Opinion]:
    """The points that comparing decides otherwise than the evidence."""
    likenesses = {point: likenesses.get(point, ()) for point in standings}
    most = _most(likenesses)
    found: dict[str, Opinion] = {}
    verdicts: dict[str, str] = {point: standing.verdict for point, standing in standings.items()}
    for point, standing in standings.items():
        if standing.verdict == "open" and (
            opinion := _open(likenesses[point], sentences, most, bounds, LIKE_WRONG, RATHER)
        ):
            found[point] = opinion
            verdicts[point] = opinion.verdict
    shares = {point: _share_wrong(verdicts, point) for point in standings if verdicts[point] != "contradicted"}
    for point, share in shares.items():
        opinion = found.get(point)
        if share < DOUBTED:
            continue
        if standings[point].verdict == "met":
            near, evidence = likenesses[point], standings[point].sentences
            opinion = _against(near, evidence, sentences, bounds.wrong_against_evidence)
            opinion = opinion or _words_alone(near, evidence, bounds.unlike_right, share >= MOSTLY_WRONG)
        elif "contradicted" in verdicts.values():
            opinion = _open(likenesses[point], sentences, most, bounds, LIKE_WRONG_WHERE_DOUBTED, 0.0)
        if opinion is not None:
            found[point] = opinion
    return found


@dataclass(frozen=True)
class _Most:
    """How like each statement is to the claims, about whichever point, that it is most like."""

    right: Mapping[Place, float]
    wrong: Mapping[Place, float]

    def is_about(self, likeness: Likeness) -> bool:
        """Whether a right statement may be about a point: it may be about several."""
        return likeness.right >= ABOUT * self.right[likeness.place]

    def is_against(self, likeness: Likeness) -> bool:
        """Whether a wrong statement is about a point: it is about the one whose wrong claims it is most like."""
        return likeness.wrong >= self.wrong[likeness.place]


def _most(likenesses: Mapping[str, Sequence[Likeness]]) -> _Most:
    right, wrong = defaultdict[Place, float](float), defaultdict[Place, float](float)
    for each in (each for near in likenesses.values() for each in near):
        right[each.place] = max(right[each.place], each.right)
        wrong[each.place] = max(wrong[each.place], each.wrong)
    return _Most(right, wrong)


def _share_wrong(verdicts: Mapping[str, str], point: str) -> float:
    others = [verdict for each, verdict in verdicts.items() if each != point]
    wrong, right = others.count("contradicted"), others.count("met")
    return (wrong + 0.5) / (wrong + right + 1.0)


def _open(
    near: Iterable[Likeness],
    sentences: Sequence[Sentence],
    most: _Most,
    bounds: Bounds,
    like_wrong: float,
    clearly: float,
) -> Opinion | None:
    """What is said about a point for which there is no evidence; None where nothing is near enough."""
    every = tuple(near)
    claimed = [each for each in every if each.count == 1 and not sentences[each.sentence].refutes]
    refused = max((each for each in claimed if each.refused > bounds.refused), key=_refused, default=None)
    if refused:
        return Opinion("contradicted", 0.0, (refused.sentence,))
    about = [each for each in every if most.is_about(each)]
    right = max((each for each in about if each.right - each.wrong > CLEARLY), key=_right, default=None)
    against = [each for each in claimed if most.is_against(each)]
    wrong = max((each for each in against if each.excess > clearly), key=_wrong, default=None)
    likely = right.right if right else 0.0
    if wrong and wrong.wrong > like_wrong and wrong.wrong >= likely:
        return Opinion("contradicted", 0.0, (wrong.sentence,))
    if right and likely > bounds.right:
        is_whole = right.right > right.half and not any(sentences[each].is_vague for each in right.sentences)
        return Opinion("met", 1.0 if is_whole else 0.5, tuple(right.sentences))
    return None


def _against(
    near: Iterable[Likeness], evidence: frozenset[int], sentences: Sequence[Sentence], like_wrong: float
) -> Opinion | None:
    """Whether every sentence that a point rests on is more like wrong claims than like right ones."""
    worst = []
    for index in evidence:
        mine = [each for each in near if each.count == 1 and each.sentence == index]
        wrong = [each for each in mine if each.wrong > like_wrong and not sentences[index].refutes]
        most = max(wrong, key=_excess, default=None)
        if most is None or most.excess <= CLEARLY or -min(each.excess for each in mine) >= most.excess:
            return None
        worst.append(most)
    return Opinion("contradicted", 0.0, (max(worst, key=_excess).sentence,)) if worst else None


def _words_alone(
    near: Iterable[Likeness], evidence: frozenset[int], unlike_right: float, is_mostly_wrong: bool
) -> Opinion | None:
    """Whether what a point rests on is like no right claim about it; None where there is nothing to compare."""
    most = max((each for each in near if not evidence.isdisjoint(each.sentences)), key=_right, default=None)
    if most is None or most.right >= unlike_right:
        return None
    said = tuple(sorted(evidence))
    return Opinion("unsure", 0.0, said) if is_mostly_wrong else Opinion("met", 0.5, said)


def _right(likeness: Likeness) -> float:
    return likeness.right


def _wrong(likeness: Likeness) -> float:
    return likeness.wrong


def _refused(likeness: Likeness) -> float:
    return likeness.refused


def _excess(likeness: Likeness) -> float:
    return likeness.excess
