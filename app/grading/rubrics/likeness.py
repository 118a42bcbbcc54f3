"""How like the statements of an answer are to claims that are known to be right, half right or wrong about a point.

Words, pairs of words, what else they mean and numbers are compared (cosine, with the weight of how rare each is among
the rubric's claims), for each sentence and for each clause or two of it. A kind's likeness is a soft maximum over its
claims, log(1 + sum of (exp(SHARPNESS · cosine) − 1) / USUAL) / SHARPNESS: claims that have nothing in common with a
statement do not count, however many there are.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

from app.grading.rubrics.lexicon import FUNCTION_STEMS, STATEMENT_BREAKS, stem
from app.grading.rubrics.reading import NO_WORDINGS, Reading, Sentence, read
from app.grading.rubrics.wordings import Wordings

Place = tuple[int, int, int, int]  # a sentence, its words from one to another, and how many sentences
Truth = Literal["right", "half", "wrong"]

SHARPNESS = 10.0  # of the soft maximum: one near claim counts, and several near ones a little more
USUAL = {"right": 6.0, "half": 3.0, "wrong": 6.0}  # so many claims that say the very same make a likeness of 1
PAIR, MEANT, NUMBER = 0.5, 0.5, 1.5  # what two words beside each other, a meaning, a number weigh; a word weighs 1
SHORTEST = 3  # words of a clause
SHORT = 16  # words and signs of a sentence that may be half of a statement
# A word is of a point's own subject where this share of its claims has it, this many times as often as the others'.
OFTEN, OWN = 0.1, 3.0
_DENIED = "!"  # before a word that is denied
_SMALL = FUNCTION_STEMS | {stem(word) for word in ("need", "matter", "point", "use", "reason")}


@dataclass(frozen=True)
class Claim:
    """A statement about one point, and whether it is so; `words` are what it is compared by, where it was read."""

    point: str
    truth: Truth
    text: str
    words: Mapping[str, float] | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True)
class Likeness:
    """How like the words from `start` to `end` of a sentence are to a point's claims of each kind, from 0 to 1; `count`
    sentences from it on, where more than one is compared as a whole.

    `refused` is how like they are to the right claim that is nearest to them when each word that is denied here counts
    as said, less what they say as it does: who refuses a thing has the words of who does it.
    """

    sentence: int
    start: int
    end: int
    right: float
    half: float
    wrong: float
    refused: float = 0.0
    count: int = 1

    @property
    def sentences(self) -> range:
        """The sentences that it is about."""
        return range(self.sentence, self.sentence + self.count)

    @property
    def place(self) -> Place:
        """Which words of which sentence it is about."""
        return self.sentence, self.start, self.end, self.count

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
    unknown: float = 0.0

    @cached_property
    def _points(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(point for point, _ in self.kinds))

    @cached_property
    def _subjects(self) -> Mapping[str, frozenset[str]]:
        """For each point the words of its own subject."""
        said: dict[str, set[int]] = defaultdict(set)
        for word, found in self.places.items():
            plain = word.removeprefix(_DENIED)
            if plain.isalnum() and plain not in FUNCTION_STEMS and len(plain) > 1:
                said[plain].update(number for number, _ in found)
        of = Counter(point for point, _ in self.kinds)
        subjects: dict[str, set[str]] = {point: set() for point in of}
        for word, numbers in said.items():
            for point, count in Counter(self.kinds[number][0] for number in numbers).items():
                others = (len(numbers) - count + 0.5) / max(1, len(self.kinds) - of[point])
                if count >= OFTEN * of[point] and count / of[point] >= OWN * others:
                    subjects[point].add(word)
        return {point: frozenset(words) for point, words in subjects.items()}

    def speaks_of(self, point: str, sentence: Sentence) -> bool:
        """Whether a sentence has a word of a point's own subject, one that the other points' claims have less often; of
        the only point there is, and of one without claims, any does."""
        own = self._subjects.get(point)
        return own is None or len(self._subjects) == 1 or not own.isdisjoint(sentence.where)

    def like(self, reading: Reading) -> Mapping[str, tuple[Likeness, ...]]:
        """For each point that has claims, how like every statement of `reading` is to them."""
        found: dict[str, list[Likeness]] = {point: [] for point in self._points}
        if not found:
            return {}
        for index, words in _told_in_two(reading):
            for point, (right, half, wrong) in self._likenesses(words).items():
                found[point].append(Likeness(index, 0, 0, right, half, wrong, count=2))
        for index, sentence in enumerate(reading.sentences):
            if not is_compared(sentence):
                continue
            for start, end in _statements(sentence):
                words = compared_words(sentence, start, end)
                if len(words) < 2:
                    continue
                dismisses = any(start <= at < end for at, _ in sentence.dismissals)
                refused = self._refusals(words, 1 if start == 0 else 2) if dismisses else {}
                for point, (right, half, wrong) in self._likenesses(words).items():
                    found[point].append(Likeness(index, start, end, right, half, wrong, refused.get(point, 0.0)))
        return {point: tuple(each) for point, each in found.items()}

    def _likenesses(self, words: Mapping[str, float]) -> Mapping[str, tuple[float, float, float]]:
        length = math.sqrt(sum(self.rarity.get(word, self.unknown) * share**2 for word, share in words.items())) or 1.0
        dots: dict[int, float] = defaultdict(float)
        for word, share in words.items():
            for number, weight in self.places.get(word, ()):
                dots[number] += weight * share
        sums: dict[tuple[str, Truth], float] = defaultdict(float)
        for number, dot in dots.items():
            sums[self.kinds[number]] += math.expm1(SHARPNESS * dot / length)

        def soft(point: str, truth: Truth) -> float:
            return math.log1p(sums[point, truth] / USUAL[truth]) / SHARPNESS

        return {point: (soft(point, "right"), soft(point, "half"), soft(point, "wrong")) for point in self._points}

    def _refusals(self, words: Mapping[str, float], least: int) -> Mapping[str, float]:
        """For each point how like what is refused is to a right claim that shares `least` words of weight with it."""
        single = {word: share for word, share in words.items() if " " not in word and "#" not in word}
        if not any(word.startswith(_DENIED) for word in single):
            return {}
        lengths, dots, shared = 0.0, defaultdict[int, float](float), Counter[int]()
        for word, share in single.items():
            other = word.removeprefix(_DENIED) if word.startswith(_DENIED) else _DENIED + word
            lengths += min(self.rarity.get(each, self.unknown) for each in (word, other)) * share**2
            for number, weight in self.places.get(other, ()):
                dots[number] += weight * share
                shared[number] += share == 1.0 and other not in _SMALL
            for number, weight in self.places.get(word, ()):
                dots[number] -= weight * share
        found: dict[str, float] = {}
        for number, dot in dots.items():
            point, truth = self.kinds[number]
            if truth == "right" and shared[number] >= least:
                found[point] = max(dot / (math.sqrt(lengths) or 1.0), found.get(point, 0.0))
        return found


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
        math.log((len(listed) + 1) / 0.5),
    )


def _whole(reading: Reading) -> Mapping[str, float]:
    words: dict[str, float] = {}
    for sentence in reading.sentences:
        for word, share in compared_words(sentence, 0, len(sentence.tokens)).items():
            words[word] = max(share, words.get(word, 0.0))
    return words


def compared_words(sentence: Sentence, start: int, end: int) -> dict[str, float]:
    """What a stretch of a sentence is compared by: its words, pairs of them, what else they mean, and its numbers."""
    words: dict[str, float] = {}
    before, dismissed = "", _dismissed(sentence)
    for at in range(start, end):
        token = sentence.tokens[at]
        if not token.stem[0].isalpha():
            continue
        word = _said(token.stem, token.denied or at in dismissed)
        words[word] = 1.0
        if before:
            words[f"{before} {word}"] = PAIR
        before = word
    for meant, places in sentence.where.items():
        place = next((each for each in places if start <= each < end), None)
        if place is not None and meant[0].isalpha():
            words.setdefault(_said(meant, sentence.tokens[place].denied or place in dismissed), MEANT)
    for number in sentence.numbers:
        if start <= number.at < end:
            words[_said(f"#{_digits(number.texts[-1])}", number.denied)] = NUMBER
    return words


def _dismissed(sentence: Sentence) -> frozenset[int]:
    """The words of the clauses that call something unnecessary or without effect."""
    if not sentence.dismissals:
        return frozenset()
    places = [at for at, _ in sentence.dismissals]
    clauses = itertools.pairwise(_cuts(sentence))
    return frozenset(
        at for start, end in clauses if any(start <= each < end for each in places) for at in range(start, end)
    )


def _said(word: str, denied: bool) -> str:
    """A word that is denied is another one: "does not shard" has little in common with "shards"."""
    return _DENIED + word if denied else word


def _digits(text: str) -> str:
    """A number as two digits and its power, so that 48.75 and 49 are one."""
    plain = text.rstrip(".,").replace(",", "")
    try:
        return f"{float(plain):.2g}"
    except ValueError:  # 1.2.3
        return plain


def is_compared(sentence: Sentence) -> bool:
    return not sentence.is_list and sentence.tokens[-1].stem != "not"  # "the bytes do not": what, stands elsewhere


def _told_in_two(reading: Reading) -> Iterator[tuple[int, dict[str, float]]]:
    """Each two short sentences that follow each other, as one: who speaks plainly says a thing in two."""
    words = [
        compared_words(each, 0, len(each.tokens)) if len(each.tokens) <= SHORT and is_compared(each) else {}
        for each in reading.sentences
    ]
    for index, (one, two) in enumerate(itertools.pairwise(words)):
        if one and two:
            yield index, one | two


def _statements(sentence: Sentence) -> Iterator[tuple[int, int]]:
    """The whole sentence first, then each clause of it, and each two that follow each other."""
    yield 0, len(sentence.tokens)
    cuts = _cuts(sentence)
    if len(cuts) > 2:
        yield from itertools.pairwise(cuts)
    if len(cuts) > 3:
        yield from zip(cuts, cuts[2:], strict=False)


def _cuts(sentence: Sentence) -> list[int]:
    """Where its clauses begin, and where the last one ends."""
    cuts, words = [0], 0
    for at, token in enumerate(sentence.tokens):
        if token.stem in STATEMENT_BREAKS and words >= SHORTEST:
            cuts.append(at)
            words = 0
        words += token.stem.isalpha()
    return [*cuts, len(sentence.tokens)]
