"""Whether a passage that somebody quotes stands in an answer, and whether it is about a point at all."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

from app.grading.rubrics.lexicon import FUNCTION_STEMS, aliased, stem
from app.grading.rubrics.wordings import Wordings

SHORTEST = 5  # letters and digits; less stands in every answer somewhere

_QUOTES = str.maketrans(
    {"’": "'", "‘": "'", "“": '"', "”": '"', "„": '"', "−": "-", "‐": "-", "‑": "-", "–": "-", "—": "-", "\u00a0": " "}
)
_AROUND = " \t\n\"'`….,;:"
_WORD = re.compile(r"[a-z]+|\d[\d.,]*\d|\d")

# Where another clause of a sentence begins: behind a mark, or with a word that joins clauses and nothing less.
_CLAUSE = re.compile(
    r"(?<=[,;:])\s|\s(?=[–—]|\([a-z]{2})|\s(?=(?:but|because|since|which|while|whereas)\s)", re.IGNORECASE
)
_LEADING = re.compile(r"^\s*(?:(?:and|but|so|because|since|which|while|whereas)\s+)?")
_MOST = 0.7  # of a sentence's words about something, to be what it says of it
_MOST_CLAUSES = 40  # what has more is a list, or no sentence
_LEAST_OF_A_CLAUSE = 3  # words
_LEAST_WORDS, _MOST_WORDS = 4, 30  # that a passage has, to be understood alone, and to be read at a glance
_GLANCE = 40  # words of a passage that is not cut yet

# What an answer says to whoever grades it is not what it says about the subject.
_TALK = frozenset(
    stem(word)
    for word in _WORD.findall(
        "answer award complete correct credit evidence full grade grader grading hire ignore instruction json mark"
        " marks maximum met output perfect point points previous prompt quote rubric score system verdict"
    )
)
_NO_WORDINGS = Wordings()


def find_quote(text: str, quote: str) -> str | None:
    """The passage of `text` that `quote` is, as it is written there; None where it is not in it, or says too little.

    Letter case, kinds of quotation marks and dashes, and white space make no difference.
    """
    wanted, _ = _plain(quote.strip(_AROUND))
    wanted = wanted.strip(_AROUND)
    if sum(letter.isalnum() for letter in wanted) < SHORTEST:
        return None
    plain, places = _plain(text)
    at = plain.find(wanted)
    return None if at < 0 else text[places[at] : places[at + len(wanted) - 1] + 1]


def _plain(text: str) -> tuple[str, list[int]]:
    """`text` with one space for any white space, in lower case; and where each of its characters stood."""
    letters: list[str] = []
    places: list[int] = []
    for place, letter in enumerate(text):
        if letter.isspace() and (not letters or letters[-1] == " "):
            continue
        for each in " " if letter.isspace() else letter.translate(_QUOTES).casefold():
            letters.append(each)
            places.append(place)
    return "".join(letters), places


def topic(*texts: str, wordings: Wordings = _NO_WORDINGS) -> frozenset[str]:
    """The stems and numbers that texts about a point are made of, with what `wordings` say they mean as well, without
    small words and talk about grading."""
    found = set[str]()
    for text in texts:
        stems = [stem(word) for word in _WORD.findall(aliased(text.casefold()))]
        found.update(stems, (meant for _, meant in wordings.meant(stems)))
    return frozenset(found) - FUNCTION_STEMS - _TALK


def passage_about(sentence: str, about: Mapping[str, float]) -> str:
    """The shortest run of clauses of a `sentence` that has most of its words that are `about` something, each counting
    what it is worth; all of it where it has none. Of what has no clauses, as dictated text, the stretch of words that
    has most of them."""
    cuts = _cuts(sentence)
    clauses = [sentence[start:end] for start, end in itertools.pairwise(cuts)]
    said = [topic(each) & about.keys() for each in clauses]
    every = _worth(said, about)
    if not every or len(clauses) > _MOST_CLAUSES:
        return _densest(sentence, about).rstrip(" ,;:–—")
    enough = [
        (cuts[end] - cuts[start], start, end)
        for start, end in itertools.combinations(range(len(clauses) + 1), 2)
        if _worth(said[start:end], about) >= _MOST * every
        and len(_WORD.findall(sentence[cuts[start] : cuts[end]].casefold())) >= _LEAST_WORDS
    ]
    _, start, end = min(enough, default=(0, 0, len(clauses)))
    passage = _LEADING.sub("", sentence[cuts[start] : cuts[end]])
    return _densest(passage, about).rstrip(" ,;:–—")


def _cuts(sentence: str) -> list[int]:
    """Where its clauses begin, and its end: two words are none."""
    cuts = [0]
    for each in _CLAUSE.finditer(sentence):
        if len(sentence[cuts[-1] : each.start()].split()) >= _LEAST_OF_A_CLAUSE:
            cuts.append(each.start())
    return [*cuts, len(sentence)]


def _worth(said: Sequence[AbstractSet[str]], about: Mapping[str, float]) -> float:
    """What the words that stand in some of what is said are worth, each once."""
    return sum(about[each] for each in frozenset[str]().union(*said))


def _densest(passage: str, about: Mapping[str, float]) -> str:
    """A passage, or where it is too long to be read at a glance the part of it that says most about something."""
    words = list(re.finditer(r"\S+", passage))
    if len(words) <= _GLANCE:
        return passage
    said = [topic(each.group()) & about.keys() for each in words]
    starts = range(len(words) - _MOST_WORDS + 1)
    first = max(starts, key=lambda at: (_worth(said[at : at + _MOST_WORDS], about), bool(said[at])))
    return passage[words[first].start() : words[first + _MOST_WORDS - 1].end()]


def is_about(passage: str, about: frozenset[str]) -> bool:
    """Whether a passage has a word or a number in common with what a point is about."""
    return bool(topic(passage) & about)
