"""An answer as the grader reads it: sentences of stemmed words, which of them are denied, and how numbers stand."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

from app.grading.rubrics.courses import Change, changes_in
from app.grading.rubrics.lexicon import (
    ALTERNATIVES,
    CLAUSE_BREAKS,
    CLAUSE_ENDS,
    DISMISSALS,
    DISMISSING_PAIRS,
    NEGATORS,
    NOT_NEGATING,
    REFUTERS,
    SUBJECTS,
    aliased,
    stem,
)
from app.grading.rubrics.numerals import numerals, with_digits
from app.grading.rubrics.stated_numbers import Number, formula_form, numbers_in
from app.grading.rubrics.wordings import Wordings
from app.grading.rubrics.words import FUNCTION_WORDS, HEDGES, MENTIONING, REASONS, VACUOUS

NO_WORDINGS = Wordings()
LONGEST_SENTENCE = 3000  # characters; what is longer is read in pieces
MOST_SENTENCES = 2000
NEGATION_REACH = 6
SHORT_LIST = 14  # words, signs and numbers
FEW_LISTED = 0.33
SHORTEST_CLAUSE = 4  # words; "tp 8, pp 2" names two things and says nothing yet

_SENTENCE_END = re.compile(r"(?<=[.!?])(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\bvs\.)(?<!\bapprox\.)\s+(?!->|=>|→)|\n+|;\s+")
_PRONOUNS = frozenset({"it", "they", "this"})
_BITS = re.compile(r"(\d ?)([KMGT])b(?![A-Za-z])")  # before capitals are lost: bits are not bytes
_BULLET = re.compile(r"^\s*(?:[-*•–>#]+|\(?\d{1,2}[.)](?!\d))\s*")
_TOKEN = re.compile(r"\d[\d,.]*(?:e[+-]?\d{1,3})(?![a-z\d])|\d[\d,.]*\d|\d|[a-z]+\d*|[=<>≈→/+×*%√^~]|[,:()—–\-]")
_RELATION = frozenset("=<>≈→/+×*%√^~:")
_SIGNS = str.maketrans(
    {"’": "'", "‘": "'", "“": '"', "”": '"', "−": "-", "‐": "-", "‑": "-", "·": "*", "⋅": "*", "×": "*"}
)


@dataclass(frozen=True)
class Token:
    """A word or sign: its stem, and whether it stands in the reach of a denial."""

    stem: str
    denied: bool


@dataclass(frozen=True)
class Sentence:
    """One sentence of an answer: as written, and as read."""

    text: str
    tokens: tuple[Token, ...]
    numbers: tuple[Number, ...]
    written: str
    refutes: bool
    dismissals: tuple[tuple[int, frozenset[str]], ...]
    is_list: bool
    is_vague: bool
    where: Mapping[str, tuple[int, ...]] = field(repr=False)

    @cached_property
    def stems(self) -> frozenset[str]:
        """All that stands in it or is meant there."""
        return frozenset(self.where)

    @cached_property
    def formula(self) -> str:
        """Its text as formulas are compared: asked only where one is looked for."""
        return formula_form(self.written)

    @cached_property
    def about(self) -> tuple[frozenset[int], ...]:
        """Of which of ALTERNATIVES each token's clause speaks: one that names none goes on about the one before, and
        what stands before the first name is said of all."""
        clauses: list[set[int]] = [set()]
        places, words = [], 0
        for at, token in enumerate(self.tokens):
            if token.stem in CLAUSE_BREAKS and words >= SHORTEST_CLAUSE:
                clauses.append(set())
                words = 0
            words += token.stem.isalpha()
            if not self._is_setting(at) and not self._is_compared(at):
                clauses[-1].update(number for number, each in enumerate(ALTERNATIVES) if token.stem in each)
            places.append(len(clauses) - 1 if any(clauses) else -1)
        for number, each in enumerate(clauses[1:], 1):
            clauses[number] = each or clauses[number - 1]
        return tuple(frozenset(clauses[each]) if each >= 0 else frozenset() for each in places)

    @cached_property
    def changes(self) -> tuple[Change, ...]:
        """What it tells of what grows, falls or stays."""
        return tuple(changes_in([each.stem for each in self.tokens], [each.denied for each in self.tokens]))

    def _is_compared(self, at: int) -> bool:
        """Whether a name only stands behind "than": the clause speaks of what is compared with it."""
        return "than" in {token.stem for token in self.tokens[max(0, at - 2) : at]}

    def _is_setting(self, at: int) -> bool:
        """Whether a name is given a number, as in tp = 8: its value is meant, and nothing said of it."""
        following = self.tokens[at + 1 : at + 3]
        return len(following) == 2 and following[0].stem == "=" and following[1].stem[0].isdigit()

    @property
    def is_mere_term(self) -> bool:
        """Whether it is a name alone, as in an answer of one term a line."""
        small = {each.stem for each in self.tokens} & (FUNCTION_WORDS | _RELATION)
        return len(self.tokens) <= 4 and not small and not self.numbers


@dataclass(frozen=True)
class Reading:
    """A whole answer."""

    sentences: tuple[Sentence, ...]

    @cached_property
    def listed_share(self) -> float:
        """How much of it is words of the field in a row rather than statements about them."""
        listed = sum(len(each.tokens) for each in self.sentences if each.is_list or each.is_mere_term)
        return listed / max(1, self._words)

    @property
    def is_stuffed(self) -> bool:
        return self._words >= 8 and self.listed_share > 0.5

    def is_said(self, index: int) -> bool:
        """Whether a sentence counts: terms in a row do where few stand among much that is said, as in a bullet."""
        sentence = self.sentences[index]
        return not sentence.is_list or (len(sentence.tokens) <= SHORT_LIST and self.listed_share <= FEW_LISTED)

    @cached_property
    def _words(self) -> int:
        return sum(len(sentence.tokens) for sentence in self.sentences)


def sentences_of(text: str) -> list[str]:
    """Where `read` takes a text apart: at the ends of sentences and lines, and what is too long in pieces."""
    return [piece for part in _SENTENCE_END.split(text) for piece in _pieces(part)]


def read(text: str, wordings: Wordings = NO_WORDINGS) -> Reading:
    """Read `text`: bounded in time and the same for ever. `wordings` are what else its words say."""
    pieces = sentences_of(text)
    return Reading(_with_subjects(filter(None, (_sentence(piece, wordings) for piece in pieces[:MOST_SENTENCES]))))


def _with_subjects(sentences: Iterable[Sentence]) -> tuple[Sentence, ...]:
    """A sentence that begins with "it" or "they" speaks of what the one before it names, where that is one thing."""
    read_so_far: list[Sentence] = []
    for sentence in sentences:
        named = [each for each in SUBJECTS if read_so_far and each in read_so_far[-1].where]
        is_of_it = sentence.tokens[0].stem in _PRONOUNS and SUBJECTS.isdisjoint(sentence.where)
        named_there = {**sentence.where, named[0]: (0,)} if is_of_it and len(named) == 1 else None
        read_so_far.append(replace(sentence, where=named_there) if named_there else sentence)
    return tuple(read_so_far)


def _pieces(part: str) -> list[str]:
    return [part[start : start + LONGEST_SENTENCE] for start in range(0, len(part), LONGEST_SENTENCE)]


_HEDGE = re.compile(rf"\b(?:{'|'.join(map(re.escape, HEDGES))})\b")

# What other people are said to say, or what one might have thought, is not claimed; nor is what is called a bad idea.
_NOT_CLAIMED = re.compile(
    r"\b(?:people|some|many|others) (?:people )?(?:\w+ )?(?:say|claim|think|believe|assume)\b|\btempting\b"
    r"|\b(?:1|you|we|i) (?:might|may|could|would) (?:have )?(?:hoped?|think|thought|expect(?:ed)?|believed?|assumed?)\b"
    r"|\bbad idea\b|\bfar too\b|\bproves? (?:nothing|little)\b|\bno proof\b|\bthrows? away\b"
)
_SET_TO = frozenset({"=", "to"})  # before the value of a flag
# "A wrong number" is no verdict on what is said of it.
_WRONG_THINGS = frozenset(
    {"answer", "answers", "number", "numbers", "result", "results", "sum", "sums", "value", "values"}
)


@lru_cache(maxsize=1024)  # an answer is read for its points, for what is false in it, and again with every reply
def _sentence(written: str, wordings: Wordings) -> Sentence | None:
    shown = " ".join(_BULLET.sub("", written).split())
    plain = unicodedata.normalize("NFKC", _RAISED.sub(_as_power, shown)).translate(_SIGNS)
    digits = with_digits(_BITS.sub(r"\1\2bit", plain).lower())
    text = aliased(digits)
    raw = [(match.group(), match.start()) for match in _TOKEN.finditer(text)]
    if not raw:
        return None
    denied = _denied([word for word, _ in raw])
    tokens = tuple(Token(stem(word), no) for (word, _), no in zip(raw, denied, strict=True))
    where: dict[str, list[int]] = {}
    for index, token in enumerate(tokens):
        where.setdefault(token.stem, []).append(index)
    for index, meant in wordings.meant([token.stem for token in tokens]):
        where.setdefault(meant, []).append(index)
    words = [word for word, _ in raw]
    return Sentence(
        shown,
        tokens,
        numbers_in(text, raw, denied),
        digits,
        _refutes(words) or _NOT_CLAIMED.search(text) is not None,
        _dismissals(words, tokens),
        _is_list(words),
        not numerals(text) and REASONS.isdisjoint(words) and _HEDGE.search(digits) is not None,
        {key: tuple(sorted(at)) for key, at in where.items()},
    )


def _refutes(words: list[str]) -> bool:
    """Whether something is called wrong: what a flag is set to is not."""
    around = zip(("", *words[:-1]), words, (*words[1:], ""), strict=True)
    return any(
        word in REFUTERS and after not in _WRONG_THINGS and not (word == "false" and before in _SET_TO)
        for before, word, after in around
    )


_RAISED = re.compile("[⁺⁻]?[⁰¹²³⁴⁵⁶⁷⁸⁹]{1,3}")
_LOWERED = str.maketrans("⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "+-0123456789")


def _as_power(match: re.Match[str]) -> str:
    """10²¹ as 10^21: without the sign it would become 1021."""
    return "^" + match.group().translate(_LOWERED)


def _denied(words: list[str]) -> list[bool]:
    """Which words stand in the reach of a denial: up to the clause's end, and not far."""
    reach, denied = 0, []
    for index, word in enumerate(words):
        following = words[index + 1] if index + 1 < len(words) else ""
        is_degree = word == "so" and index > 0 and words[index - 1] in NEGATORS  # "not so many" is still denied
        if (word in CLAUSE_ENDS and not is_degree) or word in ",:()—–":
            reach = 0
        denied.append(reach > 0)
        if word in NEGATORS and following not in NOT_NEGATING:
            reach = NEGATION_REACH
        elif reach:
            reach -= 1
    return denied


def _dismissals(words: list[str], tokens: tuple[Token, ...]) -> tuple[tuple[int, frozenset[str]], ...]:
    """Where something is called unnecessary or without effect, and the stems that say so."""
    places = ((at, later) for at in range(len(tokens)) for later in range(at + 1, min(at + 3, len(tokens))))
    pairs = ((at, later, (tokens[at].stem, tokens[later].stem)) for at, later in places)
    found = [(at, frozenset(pair)) for at, later, pair in pairs if pair in DISMISSING_PAIRS and _is_noun(words, later)]
    return (*found, *((at, frozenset({stem(word)})) for at, word in enumerate(words) if word in DISMISSALS))


def _is_noun(words: list[str], at: int) -> bool:
    """Whether a word that may be a verb is a noun: "not an issue" dismisses something, "do not issue it" does not."""
    return words[at] not in _VERBS_TOO or words[at - 1] in {"a", "an", "any", "big", "real", "the", "no"}


_VERBS_TOO = frozenset({"issue", "issues", "issued", "issuing"})


def _is_list(words: list[str]) -> bool:
    """Names or figures in a row: hardly a small word, a verb or a relation among them."""
    letters = [word for word in words if word[0].isalpha()]
    small = sum(word in FUNCTION_WORDS or word in _RELATION for word in words)
    if len(letters) >= 6 and small < 0.12 * len(letters):
        return True
    kinds = "".join("n" if word[0].isdigit() else "w" if word[0].isalpha() else "," for word in words)
    if "nnn" in kinds and small < 0.2 * len(words):
        return True
    pieces = " ".join(words).split(" , ")
    most = 3 if not MENTIONING.isdisjoint(words) else 4
    if len(pieces) + words.count("and") > most and not VACUOUS.isdisjoint(words) and REASONS.isdisjoint(words):
        return True
    return len(pieces) >= 8 and sum(map(_is_name, pieces)) >= 0.7 * len(pieces)


def _is_name(piece: str) -> bool:
    words = piece.split()
    small = [word for word in words if word in FUNCTION_WORDS]
    is_short = len(words) <= 5 and all(word in _IN_NAMES for word in small)
    return is_short or ("/" in words and not small)  # a formula may be longer


_IN_NAMES = frozenset({"the", "a", "an", "all", "of", "on", "in", "first", "back", "up", "per"})
