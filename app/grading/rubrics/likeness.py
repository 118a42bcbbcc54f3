"""How like the statements of an answer are to claims that are known to be right, half right or wrong about a point.

Words, pairs of words, what else they mean and numbers are compared (cosine, with the weight of how rare each is among
the rubric's claims), for each sentence and for each clause or two of it. A kind's likeness is a soft maximum over its
claims: log of the mean of exp(SHARPNESS · cosine), over SHARPNESS.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

from app.grading.rubrics.lexicon import CLAUSE_BREAKS
from app.grading.rubrics.reading import NO_WORDINGS, Reading, Sentence, read
from app.grading.rubrics.wordings import Wordings

Truth = Literal["right", "half", "wrong"]

SHARPNESS = 10.0  # of the soft maximum: one near claim counts, and several near ones a little more
PAIR, MEANT, NUMBER = 0.5, 0.5, 1.5  # what two words beside each other, a meaning, a number weigh; a word weighs 1
SHORTEST = 3  # words of a clause
_BREAKS = CLAUSE_BREAKS | {":", "(", ")", "becaus", "so", "which", "sinc", "therefor", "henc"}


@dataclass(frozen=True)
class Claim:
    """A statement about one point, and whether it is so; `words` are what it is compared by, where it was read."""

    point: str
    truth: Truth
    text: str
    words: Mapping[str, float] | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True)
class Likeness:
    """How like the words from `start` to `end` of a sentence are to a point's claims of each kind, from 0 to 1."""

    sentence: int
    start: int
    end: int
    right: float
    half: float
    wrong: float

    @property
    def excess(self) -> float:
        """How much more it is like wrong claims than like those that are right, or right in part."""
        return self.wrong - max(self.right, self.half)


@dataclass(frozen=True)
class Claims:
    """The claims of one rubric: whose each is, and for each word the claims it stands in, with its share of them."""

    kinds: tuple[tuple[str, Truth], ...] = ()
    places: Mapping[str, tuple[tuple[int, float], ...]] = field(default_factory=dict, repr=False)
    rarity: Mapping[str, float] = field(default_factory=dict, repr=False)
    by_number: frozenset[int] = frozenset()  # whoever says no number does not say these
    unknown: float = 0.0

    @cached_property
    def _counts(self) -> Mapping[tuple[str, Truth], int]:
        """How many claims of each kind there are: every statement of every answer is held to them."""
        return Counter(self.kinds)

    @cached_property
    def _points(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(point for point, _ in self.kinds))

    def like(self, reading: Reading) -> Mapping[str, tuple[Likeness, ...]]:
        """For each point that has claims, how like every statement of `reading` is to them."""
        found: dict[str, list[Likeness]] = {point: [] for point in self._points}
        if not found:
            return {}
        for index, sentence in enumerate(reading.sentences):
            if sentence.is_list or sentence.tokens[-1].stem == "not":  # "the bytes do not": what, stands elsewhere
                continue
            for start, end in _statements(sentence):
                words = _features(sentence, start, end)
                if len(words) < 2:
                    continue
                for point, (right, half, wrong) in self._likenesses(words).items():
                    found[point].append(Likeness(index, start, end, right, half, wrong))
        return {point: tuple(each) for point, each in found.items()}

    def _likenesses(self, words: Mapping[str, float]) -> Mapping[str, tuple[float, float, float]]:
        length = math.sqrt(sum(self.rarity.get(word, self.unknown) * share**2 for word, share in words.items())) or 1.0
        dots = [0.0] * len(self.kinds)
        for word, share in words.items():
            for number, weight in self.places.get(word, ()):
                dots[number] += weight * share
        sums: dict[tuple[str, Truth], float] = defaultdict(float)
        unsaid = frozenset() if any("#" in word for word in words) else self.by_number
        for number, (kind, dot) in enumerate(zip(self.kinds, dots, strict=True)):
            sums[kind] += math.exp(SHARPNESS * dot / length) if number not in unsaid else 1.0

        def soft(kind: tuple[str, Truth]) -> float:
            return math.log(sums[kind] / self._counts[kind]) / SHARPNESS if kind in self._counts else 0.0

        return {
            point: (soft((point, "right")), soft((point, "half")), soft((point, "wrong"))) for point in self._points
        }


NO_CLAIMS = Claims()


def read_claim(claim: Claim, wordings: Wordings) -> Claim:
    """`claim` with what it is compared by: to read it takes a hundred times as long as the rest of `make_claims`."""
    return replace(claim, words=_whole(read(claim.text, wordings)))


def make_claims(claims: Iterable[Claim], wordings: Wordings = NO_WORDINGS) -> Claims:
    """Claims ready to compare with, read through `wordings` as answers are."""
    listed = [(each, each.words if each.words is not None else _whole(read(each.text, wordings))) for each in claims]
    known = Counter(word for _, words in listed for word in words)
    rarity = {word: math.log((len(listed) + 1) / (count + 0.5)) for word, count in known.items()}
    places: dict[str, list[tuple[int, float]]] = defaultdict(list)
    for number, (_, words) in enumerate(listed):
        length = math.sqrt(sum(rarity[word] * share**2 for word, share in words.items())) or 1.0
        for word, share in words.items():
            places[word].append((number, share * rarity[word] / length))
    return Claims(
        tuple((each.point, each.truth) for each, _ in listed),
        {word: tuple(found) for word, found in places.items()},
        rarity,
        frozenset(number for number, (_, words) in enumerate(listed) if any("#" in word for word in words)),
        math.log((len(listed) + 1) / 0.5),
    )


def _whole(reading: Reading) -> Mapping[str, float]:
    words: dict[str, float] = {}
    for sentence in reading.sentences:
        for word, share in _features(sentence, 0, len(sentence.tokens)).items():
            words[word] = max(share, words.get(word, 0.0))
    return words


def _features(sentence: Sentence, start: int, end: int) -> dict[str, float]:
    """What a stretch of a sentence is compared by: its words, pairs of them, what else they mean, and its numbers."""
    words: dict[str, float] = {}
    before = ""
    for token in sentence.tokens[start:end]:
        if not token.stem[0].isalpha():
            continue
        word = _said(token.stem, token.denied)
        words[word] = 1.0
        if before:
            words[f"{before} {word}"] = PAIR
        before = word
    for meant, places in sentence.where.items():
        at = next((each for each in places if start <= each < end), None)
        if at is not None and meant[0].isalpha():
            words.setdefault(_said(meant, sentence.tokens[at].denied), MEANT)
    for number in sentence.numbers:
        if start <= number.at < end:
            words[_said(f"#{_digits(number.texts[-1])}", number.denied)] = NUMBER
    return words


def _said(word: str, denied: bool) -> str:
    """A word that is denied is another one: "does not shard" has little in common with "shards"."""
    return f"!{word}" if denied else word


def _digits(text: str) -> str:
    """A number as two digits and its power, so that 48.75 and 49 are one."""
    plain = text.rstrip(".,").replace(",", "")
    try:
        return f"{float(plain):.2g}"
    except ValueError:  # 1.2.3
        return plain


def _statements(sentence: Sentence) -> Iterator[tuple[int, int]]:
    """The whole sentence first, then each clause of it, and each two that follow each other."""
    length = len(sentence.tokens)
    yield 0, length
    cuts, words = [0], 0
    for at, token in enumerate(sentence.tokens):
        if token.stem in _BREAKS and words >= SHORTEST:
            cuts.append(at)
            words = 0
        words += token.stem.isalpha()
    cuts.append(length)
    if len(cuts) > 2:
        yield from itertools.pairwise(cuts)
    if len(cuts) > 3:
        yield from zip(cuts, cuts[2:], strict=False)
