"""What becomes of a point when the statement of an answer that comes nearest to it is weighed. Pure.

The grader's evidence is words that somebody thought of; who says the same in others is not heard by it, and who denies
it in the same words is. So the nearest statement decides where evidence does not: it is for the point, against it, or
only about it. What is about it and on neither side is never met and never missed: it is unsure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from app.grading.rubrics.grader import Rubric, grade
from app.grading.rubrics.lexicon import stem
from app.grading.rubrics.likeness import NO_CLAIMS
from app.grading.rubrics.nearness import Nearness, nearnesses
from app.grading.rubrics.points import Point, PointGrade, may_be_met
from app.grading.rubrics.reading import Reading, Sentence

ABOUT = 0.1  # the share from which a statement is about a point
HARDLY = 0.05  # … up to which one that is nearer to another point has nothing to do with it
SAYS = 0.12  # … and may say it, where no evidence does
SAYS_IN_TWO = 0.135  # … of two sentences, which have more words to be near by
ASKED_FOR = 0.15  # … of a reply: it is short, and what is short is near to anything
OWN = 0.85  # of how near it is to another point, for it to be near this one and no more
# How much it must lean for a point to be met without evidence, to be contradicted, and for evidence not to be believed.
FOR, AGAINST, DENIES = 0.08, -0.03, -0.1
BY_ITSELF = -0.02  # … and how much of that for it to be contradicted must be its own, whatever the others are like
LEAST_WORDS = 5  # of a statement that decides
# Who gets the other points right is believed more, who gets them wrong less: by so much for all, and from where on.
BELIEF, USUALLY_WRONG = 0.1, 0.4
# Words for a whole, and for a part of it: who says the one is like who says the other in all other words.
_WHOLE = frozenset(map(stem, ("whole", "full", "entire", "complete")))
_PART = frozenset(map(stem, ("slice", "shard", "piece", "part", "fraction")))


def weighed(
    points: Sequence[PointGrade], rubric: Rubric, reading: Reading, about: float = ABOUT
) -> tuple[PointGrade, ...]:
    """The points as they were heard in `reading`, after the statement that comes nearest to each was weighed."""
    near = nearnesses(rubric.near_claims, reading)
    weighing = _Weighing({each.id: each for each in rubric.points}, near, reading.sentences, about, rubric)
    at_first = {each.id: weighing.of(each) for each in points}
    return tuple(weighing.of(each, _belief(at_first, each.id)) for each in points)


def _belief(heard: Mapping[str, PointGrade], point: str) -> float:
    """How much more, or less, a statement about `point` is believed for what is heard of the others."""
    verdicts = [each.verdict for each in heard.values() if each.id != point]
    wrong, right = verdicts.count("contradicted"), verdicts.count("met")
    return BELIEF * (USUALLY_WRONG - (wrong + 0.5) / (wrong + right + 1.0))


def _says_part_of(point: Point, said: Sequence[Sentence]) -> bool:
    """Whether a part is spoken of, and no whole, where the point wants a whole."""
    named = frozenset(stem for each in said for stem in each.where)
    wants_whole = any(not pattern.stems.isdisjoint(_WHOLE) for pattern in point.met)
    return wants_whole and not named.isdisjoint(_PART) and named.isdisjoint(_WHOLE)


@dataclass(frozen=True)
class _Weighing:
    """What points are weighed by: how `near` which of `sentences` come to each."""

    points: Mapping[str, Point]
    near: Mapping[str, Sequence[Nearness]]
    sentences: Sequence[Sentence]
    about: float
    rubric: Rubric

    def of(self, heard: PointGrade, belief: float = 0.0) -> PointGrade:
        """A point as it was heard, after its nearest statement was weighed."""
        near = self.near.get(heard.id)
        if not near:
            return heard
        if heard.credit and self._is_of_another(heard, near):
            return self._without_evidence(heard, near[0], belief)
        if heard.credit:
            is_denied = near[0].lean + belief < DENIES and self._rests_on(heard, near) + belief < DENIES
            return replace(heard, verdict="unsure", credit=0.0) if is_denied else heard
        if heard.verdict == "contradicted" and (not heard.surmised or near[0].lean + belief <= 0):
            return heard
        return self._without_evidence(heard, near[0], belief)

    def _is_of_another(self, heard: PointGrade, near: Sequence[Nearness]) -> bool:
        """Whether a point is only like what was said, by words that another point has, and no evidence stands there."""
        for each in near:
            said = [self.sentences[at].text for at in each.sentences]
            if len(heard.evidence) == 1 and all(text in heard.evidence[0] for text in said):
                if each.share > HARDLY or each.of_most > OWN:
                    return False
                alone = replace(self.rubric, points=(self.points[heard.id],), critical=(), floor=(), stance=None)
                return not grade(replace(alone, claims=NO_CLAIMS), heard.evidence[0]).points[0].credit
        return False

    def _rests_on(self, heard: PointGrade, near: Sequence[Nearness]) -> float:
        """How much the evidence of a point leans where it is nearest to it."""
        for each in near:
            if all(any(self.sentences[at].text in words for words in heard.evidence) for at in each.sentences):
                return each.lean
        return near[0].lean

    def _without_evidence(self, heard: PointGrade, nearest: Nearness, belief: float) -> PointGrade:
        lean, said = nearest.lean + belief, [self.sentences[at] for at in nearest.sentences]
        words, unheard = tuple(each.text for each in said), PointGrade(heard.id, "missed", 0.0, ())
        if nearest.share <= self.about:
            return replace(heard, verdict="unsure") if heard.verdict == "contradicted" else unheard
        is_told = sum(len(each.text.split()) for each in said) >= LEAST_WORDS
        says = SAYS_IN_TWO if nearest.count > 1 else SAYS
        says_it = nearest.share > max(self.about, says) and nearest.of_most == 1  # it says one thing
        point = self.points[heard.id]
        if lean > FOR and is_told and says_it and may_be_met(point, said) and not _says_part_of(point, said):
            return PointGrade(heard.id, "met", 1.0, words)
        if lean < AGAINST and nearest.of_most > OWN:
            if nearest.lean > BY_ITSELF:
                return PointGrade(heard.id, "unsure", 0.0, words)
            denies = is_told and not any(each.refutes for each in said)
            return PointGrade(heard.id, "contradicted", 0.0, words) if denies else unheard
        return PointGrade(heard.id, "unsure", 0.0, words) if nearest.of_most > OWN else unheard
