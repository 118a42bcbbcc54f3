"""An answer in words with what was found in it: evidence underlined where it stands, a note for each point. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from app.grading.rubrics.quotes import find_quote, topic
from app.words import lowered

Kind = Literal["ok", "no", "un"]

# What a reader of words knows of a point that it found nothing of: not that it was not said.
NOT_HEARD = "Nothing in your words was heard to say it."
# How a grader's verdict is shown: its word, and the evidence it rests on.
CLASSES = {"met": "met", "missed": "missed", "contradicted": "contra", "unsure": "unsure"}
UNDERLINED: Mapping[str, Kind | None] = {"met": "ok", "missed": "un", "contradicted": "no", "unsure": "un"}
LEAST_SHARED = 3  # words that a sentence has in common with a point that it may speak of
MOST_QUOTED = 14  # words of a sentence that is quoted only to be known again
LEAST_NAMED = 4  # words that name a point

_SHOWN_FIRST: tuple[Kind, ...] = ("no", "ok", "un")  # which shows where two overlap
# Before these something has ended that can be understood alone.
_JOINS = (
    "after and because before behind between but by for from if in instead into nor on or over per since so that"
    " through until when where whereas which while who with within without"
)
_JOINING = frozenset(_JOINS.split())
# "Chooses with a reason", "Knows the usual causes": what it is about comes behind the colon.
_LEADS_IN = re.compile(r"[A-Z][a-z]+s (?:an?|by|from|how|its|one|the|two|what|when|which|who|with)\b")
_SENTENCE = re.compile(r"[^.!?;\n]*(?:[.](?=\S)[^.!?;\n]*)*(?:[.!?;]|$)")


@dataclass(frozen=True)
class Finding:
    """What became of one point of a rubric. `verdict` is its word, `css` how the word is shown, `kind` how its evidence
    is underlined, `why` the reason in a sentence, `quotes` the words that were taken for it."""

    id: str
    text: str
    verdict: str
    css: str
    reached: float
    points: float
    kind: Kind | None
    evidence: tuple[str, ...]
    why: str = ""
    quotes: tuple[str, ...] = ()

    @property
    def weight(self) -> str:
        """What it counts, in words; nothing where no points hang on it."""
        if not self.points:
            return ""
        most = f"{self.points:.3g} {'point' if self.points == 1 else 'points'}"
        return f"{self.reached:.3g} of {most}"


@dataclass(frozen=True)
class Note:
    """A finding with its number in the answer; None where nothing in it is underlined."""

    number: int | None
    finding: Finding


def _place(note: Note) -> float:
    return float("inf") if note.number is None else note.number


@dataclass(frozen=True)
class Piece:
    """A piece of an answer, underlined as `kind` where it is evidence; `ends`: the notes whose evidence ends here."""

    text: str
    kind: Kind | None
    ends: tuple[int, ...] = ()


@dataclass(frozen=True)
class Marked:
    """An answer in pieces that are all of it, and its notes: those with evidence first, as they come in it."""

    pieces: tuple[Piece, ...]
    notes: tuple[Note, ...]

    def continued(self, numbers: Mapping[str, int]) -> Marked:
        """The answer with the numbers that points have elsewhere, by their ids, for the notes that have none here."""
        notes = [replace(each, number=each.number or numbers.get(each.finding.id)) for each in self.notes]
        return replace(self, notes=tuple(sorted(notes, key=_place)))

    @property
    def last_number(self) -> int:
        """The largest number of its notes; 0 where none has one."""
        return max((each.number or 0 for each in self.notes), default=0)


def mark(text: str, findings: Sequence[Finding], first: int = 1) -> Marked:
    """`text` with the evidence of `findings` underlined, numbered from `first`. What does not stand in it is not
    underlined."""
    placed = {each.id: _places(text, each.evidence) if each.kind else () for each in findings}
    order = sorted((each for each in findings if placed[each.id]), key=lambda each: placed[each.id][0])
    numbers = {each.id: number for number, each in enumerate(order, first)}
    notes = [Note(numbers[each.id], each) for each in order]
    notes += [Note(None, each) for each in findings if each.id not in numbers]
    spans = [(*span, each.kind, numbers[each.id]) for each in order for span in placed[each.id]]
    cuts = sorted({0, len(text), *(cut for span in spans for cut in span[:2])})
    pieces = []
    for start, end in pairwise(cuts):
        over = [span for span in spans if span[0] <= start and end <= span[1]]
        kind = next((kind for kind in _SHOWN_FIRST if any(span[2] == kind for span in over)), None)
        ends = tuple(sorted({span[3] for span in over if span[1] == end}))
        pieces.append(Piece(text[start:end], kind, ends))
    return Marked(tuple(pieces), tuple(notes))


def stands_in(text: str, passage: str) -> bool:
    """Whether a passage stands in `text`, in any marks and spaces."""
    return bool(_places(text, (passage,)))


def _places(text: str, evidence: Sequence[str]) -> tuple[tuple[int, int], ...]:
    """Where each piece of evidence stands, in order."""
    found = set()
    for each in evidence:
        passage = each if each in text else find_quote(text, each)
        if passage:
            at = text.index(passage)
            found.add((at, at + len(passage)))
    return tuple(sorted(found))


def nearest(point: str, answer: str) -> str | None:
    """The sentence of an answer that has most words and numbers of a point; None where none has enough."""
    about = topic(point)
    found = []
    for sentence in sentences(answer):
        words = topic(sentence)
        shared = len(words & about)
        found.append((shared, shared / max(1, len(words)), sentence))
    shared, _, sentence = max(found, key=lambda each: each[:2], default=(0, 0.0, ""))
    return sentence if shared >= LEAST_SHARED else None


def sentences(text: str) -> list[str]:
    """The sentences of a text, as they stand in it. A full stop inside a number or a name ends none."""
    return [piece for match in _SENTENCE.finditer(text) if (piece := match.group().strip())]


def cut_short(text: str, words: int = MOST_QUOTED) -> str:
    """The beginning of a text, by which it is known again; without the full stop of one that is whole. It is cut where
    something ends: behind a mark, or before a word that joins something on."""
    said = text.split()
    if len(said) <= words:
        return text.strip().rstrip(".;:")
    ends = [at for at in range(LEAST_NAMED, words + 1) if _may_end(said, at)]
    return " ".join(said[: max(ends, default=words)]).rstrip(",;:") + " …"


def _may_end(said: Sequence[str], at: int) -> bool:
    """Whether what stands before a word is something whole."""
    before, following = " ".join(said[:at]), said[at]
    is_end = before[-1] in ",;:)" or following.casefold() in _JOINING or following.startswith("(")
    return is_end and before.count("(") == before.count(")")


def named(point: str) -> str:
    """What a point begins with, up to where its first clause ends: a name for it in a sentence. What only says that
    something is named, or chosen, is none."""
    for end in re.finditer(r"[,;:](?=\s)|\.$", point):
        before = point[: end.start()]
        is_whole = len(before.split()) >= LEAST_NAMED and before.count("(") == before.count(")")
        if is_whole and not (end.group() == ":" and _LEADS_IN.match(before)):
            return cut_short(before)
    return cut_short(point)


def why_less(verdict: str, credit: float, point: str, half: str | None, answer: str) -> str:
    """Why a grader's verdict does not give a point in full; empty where it does. `half` says what earns half, by the
    rule and not of this answer; of an answer only what stands in it, or does not, can be said."""
    if verdict == "met":
        return "" if credit == 1 else _why_half(half)
    return {
        "missed": why_missed(half, nearest(point, answer)),
        "contradicted": "What holds stands above; your words were heard as the opposite.",
        "unsure": "Something near it was heard, and not it outright.",
    }[verdict]


def why_missed(half: str | None, close: str | None) -> str:
    """What nothing was heard of: not even the half that counts; `close` is the sentence that comes nearest, if any."""
    rule = f"Half of it would be: {lowered(half).rstrip('.')}." if half else ""
    if close is None:
        return f"Not heard. {rule}" if rule else NOT_HEARD
    return f"Nearest to it is “{cut_short(close)}”, but not heard to say it. {rule}".rstrip()


def _why_half(half: str | None) -> str:
    """By the rule alone: a number that is not in an answer is seldom what it lacks."""
    rule = f" By the rule, half is for: {lowered(half)}" if half else ""
    return f"Half of it was heard.{rule}"
