"""A small ranked full-text index in memory: BM25 over weighted fields, the last word matched by its beginning.

The ranking is Okapi BM25 (Robertson and Zaragoza 2009) with one length-normalised frequency over all fields, each
occurrence counted with its field's weight. Everything is plain dictionaries: some hundred documents need no more.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import log

K1, B = 1.2, 0.5  # texts are short and of like length: less normalisation than the usual 0.75
LONGEST_QUERY = 12  # words; more only take time
FORGIVING_FROM = 3  # in a query of more words than this, one of those that the best documents have may be missing
SHORTEST_MISSPELT = 4  # letters of a word that is read as another one: of shorter ones, too many are near
MOST_COMPLETIONS = 40  # words a beginning may stand for
_COMPLETED = 0.7  # what a completed word counts beside one written out

_WORD = re.compile(r"[a-z0-9]+(?:[-.,][a-z0-9]+)*")
_CAMEL = re.compile(r"([a-z])([A-Z][a-z])")
_COMMON = frozenset(
    {
        "a",
        "an",
        "and",
        "are",
        "as",
        "at",
        "be",
        "by",
        "do",
        "does",
        "for",
        "from",
        "how",
        "in",
        "is",
        "it",
        "its",
        "of",
        "on",
        "or",
        "that",
        "the",
        "to",
        "what",
        "when",
        "why",
        "with",
    }
)


def _plain(text: str) -> str:
    """Lower case without accents; FlashAttention becomes two words."""
    if text.isascii():
        return _CAMEL.sub(r"\1-\2", text).lower()
    split = unicodedata.normalize("NFKD", _CAMEL.sub(r"\1-\2", text))
    return "".join(char for char in split if not unicodedata.combining(char)).lower()


def _stem(word: str) -> str:
    """Singular and plural are one: buckets, bucket."""
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


def words(text: str) -> list[str]:
    """The words of a query, stemmed: "All-reduce" is two, 1F1B is one."""
    found: list[str] = []
    for compound in _WORD.findall(_plain(text)):
        found += [_stem(part) for part in _parts(compound)]
    return found


def _parts(compound: str) -> list[str]:
    number = compound.replace(",", "")
    if number.replace(".", "").isdigit():
        return [number]
    return re.split(r"[-.,]", compound)


def _indexed(text: str) -> list[str]:
    """The words of a text; all-reduce is also found as allreduce."""
    found: list[str] = []
    for compound in _WORD.findall(_plain(text)):
        parts = _parts(compound)
        found += map(_stem, parts)
        if len(parts) > 1:
            found.append(_stem("".join(parts)))
    return found


@dataclass(frozen=True)
class Document:
    """One thing that can be found. `body` is plain text; `names` are ids and other words it is called by."""

    group: str
    key: str
    title: str
    href: str
    note: str = ""
    names: str = ""
    summary: str = ""
    body: str = ""


WEIGHTS: Mapping[str, float] = {"names": 8.0, "title": 6.0, "summary": 2.5, "body": 1.0}


@dataclass(frozen=True)
class ScoredDocument:
    """A document with its score and which words of it the query meant."""

    document: Document
    score: float
    matched: frozenset[str]


@dataclass
class Index:
    """Documents by the words in them."""

    documents: Sequence[Document]
    _postings: dict[str, dict[int, float]] = field(default_factory=dict)
    _vocabulary: list[str] = field(default_factory=list)
    _norms: list[float] = field(default_factory=list)
    _titles: list[list[str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        postings: dict[str, dict[int, float]] = defaultdict(dict)
        lengths: list[float] = []
        for number, document in enumerate(self.documents):
            frequencies = _weighted_words(document)
            lengths.append(sum(frequencies.values()))
            for word, frequency in frequencies.items():
                postings[word][number] = frequency
        mean = sum(lengths) / len(lengths) if lengths else 1.0
        self._norms = [K1 * (1 - B + B * length / mean) for length in lengths]
        self._titles = [words(document.title) for document in self.documents]
        self._postings = dict(postings)
        self._vocabulary = sorted(postings)

    def search(self, query: str) -> list[ScoredDocument]:
        """What the query is about, best first. The last word may be only begun; a word that nothing has is read as one
        that is a slip away (`read_as`)."""
        kept, is_closed = self._kept(query), query[-1:].isspace()
        kept = [self._meant(word, is_closed or position < len(kept) - 1) for position, word in enumerate(kept)]
        scores: dict[int, float] = defaultdict(float)
        matched: dict[int, set[str]] = defaultdict(set)
        hits: Counter[int] = Counter()
        for position, word in enumerate(kept):
            is_open = position == len(kept) - 1 and not is_closed
            for number, (score, meant) in self._of_word(word, is_open).items():
                scores[number] += score
                matched[number] |= meant
                hits[number] += 1
        least = max(hits.values(), default=0) - (len(kept) > FORGIVING_FROM)
        found = [
            ScoredDocument(
                self.documents[number],
                score * (hits[number] / len(kept)) ** 2 * self._title_share(number, kept),
                frozenset(matched[number]),
            )
            for number, score in scores.items()
            if hits[number] >= least
        ]
        return sorted(found, key=lambda each: (-each.score, each.document.title))

    def read_as(self, query: str) -> dict[str, str]:
        """The words of a query that were read as others."""
        kept, is_closed = self._kept(query), query[-1:].isspace()
        meant = {word: self._meant(word, is_closed or at < len(kept) - 1) for at, word in enumerate(kept)}
        return {word: other for word, other in meant.items() if other != word}

    def _kept(self, query: str) -> list[str]:
        asked = words(query)[:LONGEST_QUERY]
        return [word for word in asked if word not in _COMMON] or asked

    def _meant(self, word: str, is_whole: bool) -> str:
        """A word that nothing has, as it was meant: the commonest that is a slip away, or that begins so. What is known
        or begun, is short or near nothing, stays."""
        is_begun = not is_whole and any(True for _ in self._beginning(word))
        if len(word) < SHORTEST_MISSPELT or word in self._postings or is_begun or not word.isalpha():
            return word
        ends = (len(word), len(word) + 1) if not is_whole else ()
        near = [
            other
            for other in self._vocabulary
            if other.isalpha() and (is_near(word, other) or any(is_near(word, other[:end]) for end in ends))
        ]
        return max(near, key=lambda other: sum(self._postings[other].values()), default=word)

    def _title_share(self, number: int, asked: Sequence[str]) -> float:
        """1 to 1.5: how much of a query is the document's own name; it should come before what only mentions it. What
        is called just so comes before everything: 3."""
        title = self._titles[number]
        if title == list(asked):
            return 3.0
        return 1 + sum(any(word.startswith(each) for word in title) for each in asked) / (len(asked) + len(title))

    def _of_word(self, word: str, is_open: bool) -> dict[int, tuple[float, set[str]]]:
        """Documents with `word`, or with a word that begins so: the best of them counts."""
        best: dict[int, tuple[float, set[str]]] = {}
        for candidate in [word, *(self._beginning(word) if is_open else ())]:
            weight = 1.0 if candidate == word else _COMPLETED
            for number, score in self._scores(candidate):
                before, meant = best.get(number, (0.0, set()))
                best[number] = (max(before, weight * score), meant | {candidate})
        return best

    def _beginning(self, start: str) -> Iterable[str]:
        first = bisect_left(self._vocabulary, start)
        for word in self._vocabulary[first : first + MOST_COMPLETIONS]:
            if not word.startswith(start):
                return
            if word != start:
                yield word

    def _scores(self, word: str) -> Iterable[tuple[int, float]]:
        postings = self._postings.get(word)
        if not postings:
            return
        rarity = log(1 + (len(self.documents) - len(postings) + 0.5) / (len(postings) + 0.5))
        for number, frequency in postings.items():
            yield number, rarity * frequency * (K1 + 1) / (frequency + self._norms[number])


def is_near(word: str, other: str) -> bool:
    """Whether one slip leads from one to the other: a letter too many, too few or another, or two changed places."""
    if abs(len(word) - len(other)) > 1 or word == other:
        return False
    same = next((at for at, (one, two) in enumerate(zip(word, other, strict=False)) if one != two), None)
    at = min(len(word), len(other)) if same is None else same
    rest, left = word[at:], other[at:]
    if len(word) == len(other):
        return rest[1:] == left[1:] or (rest[:2] == left[:2][::-1] and rest[2:] == left[2:])
    return rest[1:] == left if len(word) > len(other) else rest == left[1:]


def _weighted_words(document: Document) -> dict[str, float]:
    frequencies: dict[str, float] = defaultdict(float)
    for name, weight in WEIGHTS.items():
        for word, count in Counter(_indexed(getattr(document, name))).items():
            frequencies[word] += weight * count
    return frequencies
