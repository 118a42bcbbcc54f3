"""Which of the candidate's own words a probe goes on from: a few that stand near to what it asks. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from app.content.interview_schemas import ProbedPoint, Question
from app.grading.rubrics.lexicon import stem
from app.grading.rubrics.quotes import topic
from app.grading.rubrics.wordings import Wordings
from app.grading.rubrics.words import VOCABULARY
from app.reveal.words import sentences

MOST_WORDS = 14  # that a person repeats of what was said
LEAST_WORDS = 4  # of a piece that stands by itself
ANSWERED, LEAST_ASKED = 0.75, 3  # the share of what a question is about that its answer has, from so many on
LEAST_TOPIC = 2  # words of it that are about something

_CUT_OFF = " …"
_OF_A_CUT = 0.7  # how near words are that have to be cut off, of what they would be
_AS_EVIDENCE = 0.5  # how near a word is that the point's evidence has, of one that its text has

_EXPRESSION = re.compile(r"\{\{.*?\}\}", re.DOTALL)
_NAMES_NOTHING = (
    "always automatic automatically because before behind choose compare depends expected first missing reasons"
)
_FIELD = frozenset(map(stem, VOCABULARY.difference(_NAMES_NOTHING.split())))

_BINDS = "because|but|so|then|which|while|whereas|since|although|though|meaning"
_CUT = re.compile(rf"(?<=[,;:])\s+|\s+[–—-]+\s+|\s+(?=(?:{_BINDS}|and then)\s)|[()]")
_JOINS = re.compile(
    rf"^(?:and|or|{_BINDS}|well|yes|no|i think|basically|um|uh|hmm|okay|ok|right|sure"
    r"|look|honestly|i mean|(?:as|like|what) i (?:already )?(?:said|mentioned)|i(?: already)? said)\b[\s,:]*",
    re.I,
)
# What begins so asks something, or hangs on what stands around it.
_IS_TORN = re.compile(
    r"^(?:maybe|perhaps|why|how|what|which|who|whose|where|when|whether|if|unless|until|as|than|is|are|was|were|does|do|did|has|have"
    r"|can|could|should|would|will|to|of|by|for|from|in|on|at|with|without|per|not|\w+ing)\b",
    re.I,
)
# What stands behind a comma is a clause of its own where it has a subject; where that is a thing, with a verb: it may
# be one of a row.
_HAS_A_SUBJECT = re.compile(
    r"^(?:i|we|you|it|they|he|she|one|there|this|that|these|those|nobody|nothing|everybody|everyone)\b"
    r"|^(?:the|a|an|each|every|all|both|no|my|our|its|their)\b.*\b(?:is|are|was|were|has|have|had|does|do|did|can|could"
    r"|will|would|should|must|may|might|needs|takes?|goes|go|comes?|gets?|holds|keeps?|sends|moves|costs|grows?"
    r"|falls?|stays?|sits?|lies|waits?|blocks|leaves?|makes?|runs|gives?|starts|ends|fits?)\b",
    re.I,
)
# A condition at the end of a piece, of which what follows from it stands in the next one.
_CONDITION = re.compile(r"[\s,]+(?:(?:and|but|so|or)\s+)?(?:if|when|once|unless|as long as)\b[^,;]*[,;:]?$", re.I)
_TRAILS = re.compile(
    r"[\s,]+(?:i (?:think|guess|suppose|believe|would say)|you know|or so|right)$"
    r"|,\s+(?:and|but|so|or)(?:\s+\w+){1,2}$",
    re.I,
)
_AROUND = ' \t\n,;:.!?–—-"“”‘’'


@dataclass(frozen=True)
class Subject:
    """What a question is about: the `terms` of it, by their stems, read through the field's `wordings`."""

    terms: frozenset[str]
    wordings: Wordings

    def is_in(self, words: str) -> bool:
        """Whether words carry something of it: a term, or a number. Others are filler, which nobody repeats."""
        return any(map(str.isdigit, words)) or not self.terms.isdisjoint(self.of(words))

    def of(self, *texts: str) -> frozenset[str]:
        """What texts are about, and what their words stand for."""
        return topic(*texts, wordings=self.wordings)


def subject_of(question: Question, wordings: Wordings) -> Subject:
    """What a question is about: the words of the field in its prompt, its points and their evidence."""
    points = (text for each in question.rubric for text in (each.text, each.ask or "", each.evidence_words))
    return Subject(_terms((question.prompt, *points), _FIELD | wordings.terms), wordings)


@lru_cache(maxsize=64)  # an answer is heard more than once
def _terms(texts: tuple[str, ...], field: frozenset[str]) -> frozenset[str]:
    return topic(*(_EXPRESSION.sub(" ", each) for each in texts)) & field


def picked_up(
    point: ProbedPoint,
    ask: str,
    said: str,
    subject: Subject,
    gone_from: Collection[str] = (),
    is_astray: bool = False,
) -> str | None:
    """The words of `said` to go on from to `ask` for `point`, none that were `gone_from` before: those nearest to it,
    whatever words they have for it. None where none are near, for a quote about something else is worse than none; of
    who `is_astray` the last that are about the `subject`."""
    about, asked, shown = subject.of(point.text), subject.of(ask), topic(point.evidence_words)
    clauses = [each for each in _about_something(said, subject) if not _are_in(each, gone_from)]
    if not clauses:
        return None

    def near(words: str) -> float:
        of = subject.of(words)
        share = (2 * len(of & asked) + len(of & about) + _AS_EVIDENCE * len(of & shown)) / (2 + len(topic(words)))
        return share * (_OF_A_CUT if words.endswith(_CUT_OFF) else 1)

    nearest = max(clauses, key=near)
    if near(nearest):
        return nearest
    return clauses[-1] if is_astray else None


def answered(ask: str, said: str, subject: Subject) -> str:
    """The sentence of `said` that has nearly all that `ask` is about, and so may answer it; empty where none has."""
    asked = subject.of(ask)
    if len(asked) < LEAST_TOPIC:
        return ""
    told = max(sentences(said), key=lambda each: len(asked & subject.of(each)), default="")
    least = ANSWERED if len(asked) >= LEAST_ASKED else 1.0  # of a short question all
    return told if len(asked & subject.of(told)) >= least * len(asked) else ""


def _about_something(said: str, subject: Subject) -> list[str]:
    return [each for each in _clauses(said) if len(topic(each)) >= LEAST_TOPIC and subject.is_in(each)]


def few_words(said: str, subject: Subject | None = None) -> str:
    """Those of `said` that a person repeats to show that it was heard; of a `subject`, none where it has none."""
    return max(
        (each for each in _clauses(said) if subject is None or subject.is_in(each)),
        key=lambda each: len(topic(each)) * (_OF_A_CUT if each.endswith(_CUT_OFF) else 1),
        default="",
    )


def repeats(words: str, other: str) -> bool:
    """Whether two quotes are the same words, or one is a part of the other that stands by itself."""
    one, two = sorted((_bare(words), _bare(other)), key=len)
    return len(topic(one)) >= LEAST_TOPIC and f" {one} " in f" {two} "


def _are_in(words: str, others: Iterable[str]) -> bool:
    return any(repeats(words, each) for each in others)


def _bare(quote: str) -> str:
    return " ".join(quote.removesuffix(_CUT_OFF).casefold().split())


def _clauses(said: str) -> Iterator[str]:
    """What was said, in clauses that can be repeated: whole ones, and nothing that was asked."""
    for sentence in sentences(said):
        if sentence.endswith("?"):
            continue
        pieces: list[str] = []
        for piece in filter(None, map(str.strip, _CUT.split(sentence.rstrip(".!?;")))):
            joined = f"{pieces[-1]} {piece}" if pieces else ""
            if pieces and len(joined.split()) <= MOST_WORDS and min(map(_words, (pieces[-1], piece))) < LEAST_WORDS:
                pieces[-1] = joined
            else:
                pieces.append(piece)
        pieces = [*(_CONDITION.sub("", each) for each in pieces[:-1]), *pieces[-1:]]
        yield from (
            short
            for number, piece in enumerate(pieces)
            if (short := _shortened(piece)) and not _IS_TORN.match(short) and _is_whole(piece, short, number)
        )


def _is_whole(piece: str, short: str, number: int) -> bool:
    """Whether a piece of a sentence can stand alone: its first one, one that is joined on, or one with a subject."""
    return number == 0 or _JOINS.match(piece) is not None or _HAS_A_SUBJECT.match(short) is not None


def _shortened(piece: str) -> str:
    """A clause without what joins it to the one before or only trails behind it, and no longer than a person
    repeats."""
    while (bare := _TRAILS.sub("", _JOINS.sub("", piece.strip(_AROUND)))) != piece:
        piece = bare
    words = piece.split()
    return piece if len(words) <= MOST_WORDS else " ".join(words[:MOST_WORDS]).rstrip(_AROUND) + _CUT_OFF


def _words(text: str) -> int:
    return len(text.split())
