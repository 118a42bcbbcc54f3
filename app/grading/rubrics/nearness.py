"""Where an answer comes nearest to a point, in one sentence or in two that follow each other, and for or against it.

Whole statements are held against all that is known to be said about a point, right or wrong, as in `likeness`, and many
claims that are somewhat like a statement count more here than the one that is most like it: what a point is about is
told by all of them, and so is the side that a statement is on. Clauses are not looked at: what is cut off a statement
is near to anything.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from app.grading.rubrics.likeness import Claims, Truth, compared_words, is_compared
from app.grading.rubrics.reading import Reading

SHARPNESS = 4.0  # of the soft maximum over claims: less than of likeness
USUAL: Mapping[Truth, float] = {"right": 6.0, "half": 3.0, "wrong": 6.0}  # claims of each kind about a point
ABOUT = 0.1  # the share from which a sentence is about a point
LONGEST = 40  # words and signs of two sentences that are taken as one


@dataclass(frozen=True)
class Nearness:
    """Where an answer comes nearest to a point: the first of its `sentences`, and how many of them.

    `share` is how near, from 0 to 1, the less the nearer that statement is to another point; `lean` how much more it
    is like what is right of the point than like what is wrong of it, below 0 where it is the other way round; `of_most`
    how near it is, of how near that statement is to the point that it is nearest to.
    """

    sentence: int
    count: int
    share: float
    lean: float
    of_most: float = 1.0

    @property
    def sentences(self) -> range:
        """The sentences that it is about, by their numbers."""
        return range(self.sentence, self.sentence + self.count)


NOWHERE = Nearness(0, 0, 0.0, 0.0, 0.0)


def nearnesses(claims: Claims, reading: Reading) -> Mapping[str, tuple[Nearness, ...]]:
    """For each point that has claims, how near every statement of `reading` comes to it, the nearest first."""
    found: dict[str, list[Nearness]] = {point: [] for point, _ in claims.kinds}
    for sentence, count, words in _statements(reading) if found else ():
        sums = _sums(claims, words)
        near = {point: _soft(sum(sums[point, truth] for truth in USUAL), 10.0) for point in found}
        most = max(near.values()) or 1.0
        for point, share in near.items():
            right, wrong = (_soft(sums[point, truth], USUAL[truth]) for truth in ("right", "wrong"))
            found[point].append(Nearness(sentence, count, share * (share / most) ** 2, right - wrong, share / most))
    return {point: tuple(sorted(near, key=lambda each: -each.share)) for point, near in found.items() if near}


def nearest_to(claims: Claims, reading: Reading, point: str) -> Nearness:
    """Where `reading` comes nearest to a point, which may be nowhere."""
    return next(iter(nearnesses(claims, reading).get(point, ())), NOWHERE)


def nearest_sentence(near: Sequence[Nearness], evidence: Sequence[str], reading: Reading) -> str | None:
    """The sentence that comes nearest to a point and is about no other, where its `evidence` is one passage that stands
    in one that is nearer to another: its words happen to be there. None where it is well where it stands."""
    if len(evidence) != 1:
        return None
    own = next((each for each in near if each.count == 1), None)
    rests = next((each for each in near if _is_in(each, evidence[0], reading)), None)
    if own is None or rests is None or own.of_most < 1 or rests.of_most == 1 or own.share <= ABOUT or own.lean < 0:
        return None
    return None if _is_in(own, evidence[0], reading) else reading.sentences[own.sentence].text


def _is_in(nearness: Nearness, words: str, reading: Reading) -> bool:
    """Whether the statement that comes near stands in words."""
    return all(reading.sentences[at].text in words for at in nearness.sentences)


def _statements(reading: Reading) -> Iterator[tuple[int, int, Mapping[str, float]]]:
    """Each sentence, and each two that follow each other, by number, how many, and the words they are compared by."""
    words = [compared_words(each, 0, len(each.tokens)) if is_compared(each) else {} for each in reading.sentences]
    yield from ((at, 1, each) for at, each in enumerate(words) if len(each) > 1)
    lengths = [len(each.tokens) for each in reading.sentences]
    for at, (one, two) in enumerate(itertools.pairwise(words)):
        if lengths[at] + lengths[at + 1] <= LONGEST and (one or two):
            yield at, 2, {word: max(one.get(word, 0.0), two.get(word, 0.0)) for word in one | two}


def _sums(claims: Claims, words: Mapping[str, float]) -> Mapping[tuple[str, Truth], float]:
    """How like a statement is to the claims of each kind about each point, summed up."""
    length = math.sqrt(sum(claims.rarity.get(word, claims.unknown) * share**2 for word, share in words.items())) or 1.0
    dots: dict[int, float] = defaultdict(float)
    for word, share in words.items():
        for number, weight in claims.places.get(word, ()):
            dots[number] += weight * share
    sums: dict[tuple[str, Truth], float] = defaultdict(float)
    for number, dot in dots.items():
        sums[claims.kinds[number]] += math.expm1(SHARPNESS * dot / length)
    return sums


def _soft(total: float, usual: float) -> float:
    return math.log1p(total / usual) / SHARPNESS
