"""Sentences of the content, and which of them may hold evidence: hundreds of wordings are looked for in thousands."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from app.grading.rubrics.lexicon import aliased, stem
from app.grading.rubrics.patterns import Atom, Pattern, Words
from app.grading.rubrics.reading import Reading, read, sentences_of

Location = tuple[str | int, ...]

_WORD = re.compile(r"[a-z\d]+")
_PIECE = re.compile(r"[a-z]+\d*")
# How what the reader reads as one word may be written in several: by the first of them, or the one that tells most.
_WRITTEN_AS = {
    "tp": "tensor t",
    "dp": "data d",
    "pp": "pipeline p",
    "sp": "sequence",
    "ddp": "d distributed plain ordinary vanilla classic pure naive standard regular simple traditional",
    "fsdp": "f fully",
    "stage1": "zero stage ds deepspeed z first",
    "stage2": "zero stage ds deepspeed z",
    "stage3": "zero stage ds deepspeed z",
    "allreduc": "all",
    "allgath": "all",
    "reducescatt": "reduce",
    "alltoal": "all",
    "microbatch": "micro",
    "timeout": "time",
    "dataload": "data",
    "oom": "out",
    "recomput": "re activation gradient grad act",
    "checkpoint": "check",
    "innod": "node nodes server box boxes machine domain",
    "crossnod": "node nodes server box boxes machine",
    "gpu": "g",
    "mfu": "m",
    "nccl": "n",
    "nvlink": "n nv",
    "nosync": "no",
    "pyspi": "py",
    "onefoneb": "1f1b 1",
    "bus": "busbw",
    "bandwidth": "busbw",
    "powersgd": "power",
    "topk": "top",
    "isoflop": "iso",
    "mtbf": "mean",
    "crossentropi": "cross",
    "prefetch": "pre",
    "baselin": "mid",
    "rememb": "forget overlook neglect",
}
_OF_BEFORE = re.compile(r"(?:it|they|this)\b", re.IGNORECASE)  # what it is, the sentence before says
_ANYWHERE = frozenset({"not", "no", "can", "with", "without", "first", "second", "rank", "k", "="})


@dataclass(frozen=True)
class ContentSentence:
    """A sentence with the one before it in its text, which says what its "it" is; `source` is the key of its file."""

    source: str
    location: Location
    text: str
    before: str = ""


class Sentences:
    """Sentences that can be asked which of them say something, by the words that stand in them."""

    def __init__(self, texts: Iterable[tuple[str, Location, str]]) -> None:
        """Of texts, each with the key of its source and its place in it."""
        self.sentences = tuple(_sentences(texts))
        self._readings: dict[int, Reading] = {}
        self._written: dict[str, set[int]] = defaultdict(set)
        for number, sentence in enumerate(self.sentences):
            for word in set(_WORD.findall(sentence.text.lower())):
                for each in _read_as(word):
                    self._written[each].add(number)
        self._all = set(range(len(self.sentences)))
        self._having: dict[str, set[int]] = {}

    def near(self, pattern: Pattern) -> Iterator[tuple[ContentSentence, Reading]]:
        """The sentences that may hold a pattern, by their words, each as it is read behind the one before it."""
        chosen = self._all
        for group in pattern.places[0]:
            chosen = chosen & set[int]().union(*map(self._may_have, group))
        for number in sorted(chosen):
            yield self.sentences[number], self._read(number)

    def _may_have(self, atom: Atom) -> set[int]:
        """Where an atom may stand: where each of its words is written, or what is read as it."""
        chosen = self._all
        for word in atom.stems if isinstance(atom, Words) else ():
            any_of = {word} if isinstance(word, str) else word
            chosen = chosen & set[int]().union(*map(self._where, any_of))
        return chosen

    def _where(self, word: str) -> set[int]:
        if word in _ANYWHERE or not word.isalpha():
            return self._all
        if word not in self._having:
            forms = {word, *map(stem, _WRITTEN_AS.get(word, "").split())}
            self._having[word] = set[int]().union(*(self._written[each] for each in forms if each in self._written))
        return self._having[word]

    def _read(self, number: int) -> Reading:
        if number not in self._readings:
            sentence = self.sentences[number]
            text = f"{sentence.before}\n{sentence.text}" if _OF_BEFORE.match(sentence.text) else sentence.text
            self._readings[number] = read(text)
        return self._readings[number]


@lru_cache(maxsize=20_000)
def _read_as(word: str) -> frozenset[str]:
    """The stems of a written word, whole and in its pieces, and those of what it is read as."""
    return frozenset(stem(each) for each in (word, *_PIECE.findall(word), *_PIECE.findall(aliased(word))))


def _sentences(texts: Iterable[tuple[str, Location, str]]) -> Iterator[ContentSentence]:
    taken: set[str] = set()
    for source, location, text in texts:
        if text in taken:  # what several items share is said once
            continue
        taken.add(text)
        before = ""
        for sentence in sentences_of(text):
            yield ContentSentence(source, location, sentence, before)
            before = sentence
