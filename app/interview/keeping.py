"""Whether a reply keeps the sentence that it was questioned about, or turns from it. Pure.

Who is asked about a sentence that says the opposite of a point answers in few words, and the words of a right answer
and of a wrong one are much the same: "less", then a number. So who begins with the same way as before ("less", "the
same") and goes no other, who says the sentence again, and who says that they stand by it keep it, whatever else stands
there; and only who takes it back, or says something that leans to what is right, has turned.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from app.grading.rubrics.grader import Rubric
from app.grading.rubrics.lexicon import stem
from app.grading.rubrics.likeness import compared_words, is_compared
from app.grading.rubrics.nearness import Nearness, nearest_to
from app.grading.rubrics.reading import Reading, read
from app.grading.rubrics.wordings import Wordings
from app.interview.hearing import says_as_before
from app.interview.replying import affirms, stands_by, takes_back

FIRST_WORDS = 4  # of a reply, that answer how things are
ALIKE = 0.6  # the cosine from which a reply says the questioned sentence again
CLEARLY = 0.1  # how much a reply must lean to what is right of a point, to turn although it begins as before
TURNED = 0.0  # how much a reply leans to what is right of a point, for it to have turned
TURNED_WITH_A_FIGURE = -0.05  # … where it has a number that was not said before: figures are hardly like any claim

_WAYS = {
    "less": "less fewer lower smaller little least cheaper shrinks halves below beneath",
    "more": "more higher larger bigger greater most grows increases doubles rises above",
    "same": "same equal equally unchanged identical alike",
    "nothing": "nothing none free",
}
_WAY_OF = {stem(word): way for way, words in _WAYS.items() for word in words.split()}
_CHANGE = frozenset(map(stem, ("change", "changes", "differ", "difference")))  # denied, it is the same


def keeps(said: str, reply: str, rubric: Rubric, point: str) -> bool:
    """Whether `reply` keeps what was `said` against `point` and questioned."""
    if takes_back(reply):
        return False
    if stands_by(reply) or (affirms(reply) and nearest_in(rubric, point, reply).lean <= CLEARLY):
        return True
    before, after = read(said, rubric.wordings), read(reply, rubric.wordings)
    lean = nearest_to(rubric.near_claims, after, point).lean
    if _go_the_same_way(before, after):
        return lean <= CLEARLY
    return lean <= TURNED and (says_as_before(reply) or _alike(before, after, rubric) >= ALIKE)


def goes_on(said: str, reply: str, rubric: Rubric, point: str) -> bool:
    """Whether `reply` goes the same way as what was `said`, and does not lean to what is right of `point`."""
    return goes_the_same_way(said, reply, rubric.wordings) and nearest_in(rubric, point, reply).lean <= TURNED


def goes_the_same_way(said: str, reply: str, wordings: Wordings) -> bool:
    """Whether a reply begins with the same way as what was `said`, goes no other and does not take it back."""
    return not takes_back(reply) and _go_the_same_way(read(said, wordings), read(reply, wordings))


def _go_the_same_way(before: Reading, after: Reading) -> bool:
    ways = _ways(before)
    begins = _ways(after, FIRST_WORDS) & ways - {"nothing"}  # who answers “nothing” may be asked what is left
    return bool(begins) and _ways(after) - ways <= {"nothing"}


def turns(said: str, reply: str, rubric: Rubric, point: str) -> bool:
    """Whether `reply` turns from what was `said` to what is right of `point`."""
    if takes_back(reply):
        return True
    if keeps(said, reply, rubric, point):
        return False
    before, after = read(said, rubric.wordings), read(reply, rubric.wordings)
    least = TURNED_WITH_A_FIGURE if _numbers(after) - _numbers(before) else TURNED
    return nearest_to(rubric.near_claims, after, point).lean > least


def nearest_in(rubric: Rubric, point: str, said: str) -> Nearness:
    """Where words come nearest to a point, and how they lean there."""
    return nearest_to(rubric.near_claims, read(said, rubric.wordings), point)


def _numbers(reading: Reading) -> set[str]:
    return {number.texts[-1] for sentence in reading.sentences for number in sentence.numbers}


def _ways(reading: Reading, most: int | None = None) -> set[str]:
    """Which way things go by what is said in the first so many words at `most`: less, more, the same, nothing. What is
    denied goes no way, but who denies a change says that it is the same."""
    tokens = [token for sentence in reading.sentences for token in sentence.tokens][:most]
    same = {"same" for token in tokens if token.denied and token.stem in _CHANGE}
    return same | {_WAY_OF[token.stem] for token in tokens if token.stem in _WAY_OF and not token.denied}


def _alike(one: Reading, other: Reading, rubric: Rubric) -> float:
    """How like the sentences of two readings are at most, by their words and how rare these are among claims."""
    firsts, seconds = (
        [compared_words(each, 0, len(each.tokens)) for each in reading.sentences if is_compared(each)]
        for reading in (one, other)
    )
    return max((_cosine(first, second, rubric) for first in firsts for second in seconds), default=0.0)


def _cosine(one: Mapping[str, float], other: Mapping[str, float], rubric: Rubric) -> float:
    claims = rubric.near_claims

    def length(words: Mapping[str, float]) -> float:
        return math.sqrt(sum((share * claims.rarity.get(word, claims.unknown)) ** 2 for word, share in words.items()))

    both = sum(one[word] * other[word] * claims.rarity.get(word, claims.unknown) ** 2 for word in one.keys() & other)
    return both / ((length(one) * length(other)) or 1.0)
