"""What becomes of a point when its statements are compared with known claims about it.

Evidence that was found stands, unless the answer gives no reason to believe it: few other points of it are right, or
some are wrong, and what it rests on is more like wrong claims than like right ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from app.grading.rubrics.likeness import Likeness
from app.grading.rubrics.reading import Sentence

# From this likeness on a statement is a known claim …
LIKE_WRONG = 0.35
LIKE_WRONG_WHERE_DOUBTED = 0.2  # … in an answer that gets other points wrong
# … and by this much more than it is one to the contrary.
CLEARLY, RATHER = 0.1, 0.05
REFUSED = 0.12  # from this likeness on it has the words of a right claim, and calls them unnecessary
# Of the other points that an answer decides, with one half added on both sides, this share is wrong: it is doubted.
DOUBTED = 0.35


@dataclass(frozen=True)
class Bounds:
    """From which likeness on a statement is a right claim, and a wrong one although it has evidence."""

    right: float
    wrong_against_evidence: float


IN_AN_ANSWER = Bounds(0.2, 0.25)
IN_A_REPLY = Bounds(0.15, 1.0)  # to a question about the point: evidence stands, for nothing else speaks against it


@dataclass(frozen=True)
class Standing:
    """What the evidence says of a point, and the sentences it rests on."""

    verdict: Literal["met", "contradicted", "open"]
    sentences: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Opinion:
    """What comparing says of a point instead, and its sentences; `credit` as of a grade."""

    verdict: Literal["met", "contradicted"]
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
    found: dict[str, Opinion] = {}
    verdicts = {point: standing.verdict for point, standing in standings.items()}
    for point, standing in standings.items():
        if standing.verdict == "open" and (
            opinion := _open(likenesses[point], sentences, bounds.right, LIKE_WRONG, RATHER)
        ):
            found[point] = opinion
            verdicts[point] = opinion.verdict
    for point in [each for each in standings if verdicts[each] != "contradicted" and _is_doubted(verdicts, each)]:
        opinion = found.get(point)
        if standings[point].verdict == "met":
            opinion = _against(likenesses[point], standings[point].sentences, sentences, bounds.wrong_against_evidence)
        elif "contradicted" in verdicts.values():
            opinion = _open(likenesses[point], sentences, bounds.right, LIKE_WRONG_WHERE_DOUBTED, 0.0)
        if opinion is not None:
            found[point] = opinion
    return found


def _is_doubted(verdicts: Mapping[str, str], point: str) -> bool:
    others = [verdict for each, verdict in verdicts.items() if each != point]
    wrong, right = others.count("contradicted"), others.count("met")
    return (wrong + 0.5) / (wrong + right + 1.0) >= DOUBTED


def _open(
    near: Iterable[Likeness], sentences: Sequence[Sentence], like_right: float, like_wrong: float, clearly: float
) -> Opinion | None:
    """What is said about a point for which there is no evidence; None where nothing is near enough."""
    every = tuple(near)
    claimed = [each for each in every if each.count == 1 and not sentences[each.sentence].refutes]
    refused = max((each for each in claimed if each.refused > REFUSED), key=_refused, default=None)
    if refused:
        return Opinion("contradicted", 0.0, (refused.sentence,))
    right = max((each for each in every if each.right - each.wrong > CLEARLY), key=_right, default=None)
    wrong = max((each for each in claimed if each.excess > clearly), key=_wrong, default=None)
    likely = right.right if right else 0.0
    if wrong and wrong.wrong > like_wrong and wrong.wrong >= likely:
        return Opinion("contradicted", 0.0, (wrong.sentence,))
    if right and likely > like_right:
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


def _right(likeness: Likeness) -> float:
    return likeness.right


def _wrong(likeness: Likeness) -> float:
    return likeness.wrong


def _refused(likeness: Likeness) -> float:
    return likeness.refused


def _excess(likeness: Likeness) -> float:
    return likeness.excess
