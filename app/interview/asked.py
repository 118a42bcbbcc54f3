"""A sitting question by question: what was asked, what was said to it, and how each thing was heard. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from app.content.interview_schemas import Interview
from app.interview.challenging import LEFT_OPEN, SAID_AGAIN, STILL_WRONG, STOOD_BY, TAKEN_BACK, WITHDRAWN
from app.interview.discounting import LEAST_LEFT
from app.interview.falsehoods import quoted
from app.interview.lessons import LEAST_LOST
from app.interview.parts import Part, Reactions, parts_of
from app.interview.replying import stands_by, takes_back
from app.interview.rows import (
    NO_ANSWER,
    NOT_ASKED,
    TO_JUDGE,
    VERDICTS,
    Challenged,
    JudgedPoint,
    Pushed,
    Row,
    has_stayed,
)
from app.interview.scorecards import Scorecard
from app.reveal.meter import Meter
from app.reveal.words import CLASSES, NOT_HEARD, UNDERLINED, Finding, Marked, mark, nearest, stands_in, why_less


@dataclass(frozen=True)
class Exchange:
    """What the interviewer asked about an answer, and the reply: `marked` where it is words, `verdict` as a page says
    it and shows it."""

    pushed: Pushed
    marked: Marked | None
    verdict: str
    css: str


@dataclass(frozen=True)
class Answered:
    """One part of a question with all there is to say of it. `meter` draws a wrong number, `marked` is an answer in
    words with its evidence, `exchanges` are what was asked about it."""

    row: Row
    is_follow_up: bool
    meter: Meter | None
    marked: Marked | None
    exchanges: tuple[Exchange, ...]

    @property
    def said(self) -> frozenset[str]:
        """The points that count as said: by the candidate's judgement, else by what was heard."""
        return frozenset(each.id for each in self.row.rubric if (each.heard == "met" if each.met is None else each.met))


@dataclass(frozen=True)
class Asked:
    """A question with all that followed on it, and the time it took: from the answer before to its own last one."""

    title: str
    number: int
    parts: tuple[Answered, ...]
    budget_minutes: int
    used_minutes: float | None

    @property
    def points(self) -> float:
        return sum(part.row.points for part in self.parts)

    @property
    def reached(self) -> float:
        return sum(part.row.reached for part in self.parts)

    @property
    def is_settled(self) -> bool:
        """Whether nothing of it was lost, is false, or is for the candidate to judge."""
        return not any(
            row.lost >= LEAST_LOST
            or row.challenged
            or row.verdict in (TO_JUDGE, VERDICTS["wrong"])
            or any(each.is_open for each in row.rubric)
            for row in (part.row for part in self.parts)
        )

    @property
    def left_out(self) -> str:
        """Why nothing of it was answered: left blank, not asked; empty where something was."""
        verdicts = {part.row.verdict for part in self.parts}
        if verdicts <= {NOT_ASKED}:
            return "not asked"
        return "left blank" if verdicts <= {NO_ANSWER, NOT_ASKED} else ""


def questions_asked(
    interview: Interview, card: Scorecard, minutes: Mapping[str, float], reactions: Reactions
) -> tuple[Asked, ...]:
    """What was asked, in its order, with the `minutes` that each question took."""
    rows = {row.id: row for row in card.rows}
    scored = [part for part in parts_of(interview, reactions) if part.id in rows]
    found: list[Asked] = []
    for number, question in enumerate(interview.questions, 1):
        parts = [part for part in scored if part.question is question]
        if not parts:
            continue
        answered = tuple(_answered(part, rows[part.id]) for part in parts)
        found.append(Asked(question.title, number, answered, question.minutes, minutes.get(question.id)))
    return tuple(found)


def _answered(part: Part, row: Row) -> Answered:
    marked = mark(row.said, _findings(row)) if row.kind == "text" and row.said else None
    exchanges, last, numbers = [], marked.last_number if marked else 0, dict[str, int]()
    for pushed in row.pushed:
        exchanges.append(_exchange(row, pushed, last + 1))
        if (words := exchanges[-1].marked) and words.last_number:
            last = numbers[pushed.point] = words.last_number
    if marked:
        marked = marked.continued(numbers)
    meter = row.number.meter(row.title) if row.number else None
    return Answered(row, part.is_follow_up, meter, marked, tuple(exchanges))


# How a reply is shown: what its verdict is called, and how the word is drawn.
_REPLIES = {
    "right": ("Put right", "met"),
    "wrong": ("Stayed wrong", "contra"),
    "better": ("Better, not right yet", "unsure"),
    "met": ("Heard when asked", "met"),
    "missed": ("Not heard in the reply", "missed"),
    "contradicted": ("Heard as the opposite", "contra"),
    "unsure": ("Near it, not heard outright", "unsure"),
    TAKEN_BACK: ("Taken back", "met"),
    WITHDRAWN: ("Taken back, without what is so", "unsure"),
    SAID_AGAIN: ("Said again", "contra"),
    STOOD_BY: ("Stood by", "contra"),
    STILL_WRONG: ("Answered, and still wrong", "contra"),
    LEFT_OPEN: ("Not put right", "unsure"),
    NO_ANSWER: ("No reply", "missed"),
}


_REASON = re.compile(
    r"\b(?:because|since|so that|due to|reason|that's why|in order to|they are there for|needed for)\b"
)
KEPT = "Kept when asked"  # what is heard as the opposite of a point
# How a point is called, by what was heard of it.
_HEARD = {"met": "Met", "missed": "Not heard", "contradicted": "Heard as the opposite", "unsure": "Near it"}


def _exchange(row: Row, pushed: Pushed, first: int) -> Exchange:
    """What was asked and replied; the notes of a reply go on from those of the answer, with number `first`."""
    verdict, css = _REPLIES.get(pushed.verdict, (pushed.verdict.capitalize(), "missed"))
    if any(point.id == pushed.point for point, _ in row.kept):
        verdict = KEPT
    if pushed.point and pushed.verdict in ("missed", "contradicted"):
        verdict = "Stood by" if stands_by(pushed.said) else "Taken back" if takes_back(pushed.said) else verdict
    if any(each.otherwise and each.id == pushed.point for each in row.rubric):
        verdict = _another(row, pushed.point)
    if pushed.verdict == "wrong" and not has_stayed(row, pushed):
        verdict = "Changed, and still wrong"
    marked = None
    if row.kind == "text" and pushed.said and pushed.point:
        point = next(each for each in row.rubric if each.id == pushed.point)
        kind = UNDERLINED.get(pushed.verdict)
        finding = Finding(point.id, point.point, verdict, css, 0.0, 0.0, kind, pushed.evidence)
        marked = mark(pushed.said, [finding], first)
    return Exchange(pushed, marked, verdict, css)


def _findings(row: Row) -> list[Finding]:
    """The points as they were heard, and what is false whatever was asked, with what is so."""
    return [*(_finding(row, point) for point in row.rubric), *(_not_so(row, each) for each in row.challenged)]


def _not_so(row: Row, false: Challenged) -> Finding:
    if false.is_taken_back:
        return Finding(false.id, quoted(false.quote), "Taken back", "met", 0.0, 0.0, "un", (false.quote,), false.so)
    return Finding(
        false.id, quoted(false.quote), "Not so", "contra", 0.0, 0.0, "no", (_beside(row, false.quote),), false.so
    )


def _beside(row: Row, words: str) -> str:
    """What a wrong sentence says beside what it says that counts."""
    for point in row.rubric:
        for right in point.evidence if point.heard == "met" and point.credit else ():
            rest = words.replace(right.rstrip("."), "").strip(" ,;:")
            if rest != words and len(rest.split()) >= LEAST_LEFT:
                return rest
    return words


def _finding(row: Row, point: JudgedPoint) -> Finding:
    """A point as it was heard, with the candidate's own judgement where that differs or decides."""
    worth = row.points * point.weight / sum(each.weight for each in row.rubric)
    if point.heard is None:
        return _judged_alone(row, point, worth)
    verdict, css, kind = point.heard, CLASSES[point.heard], UNDERLINED[point.heard]
    why = why_less(verdict, point.credit, point.point, point.half, row.said) if verdict == "met" else ""
    if point.wants_figure and point.credit < 1:
        why = "Half of it was heard: there is no number in these words, and it takes one."
    word = "Half met" if verdict == "met" and point.credit < 1 else _HEARD[verdict]
    if verdict == "unsure" and point.met is not None:
        word, css = ("Met, you judged", "met") if point.met else ("Not said, you judged", "missed")
        kind, why = ("ok", "") if point.met else ("un", why)
        if point.met and point.otherwise:
            word, why = "Half met, you judged", "You were asked about it and had other words for it, so it counts half."
    elif point.otherwise and point.pushed <= point.credit:
        word, css = _another(row, point.id), "unsure"
        why = "You were asked about it and kept to it."
    elif point.pushed > point.credit:
        in_full = "You were near it before, so it counts in full."
        word, css, why = "Heard when asked", "met", in_full if point.pushed == 1 else "It counts half."
        kind = "un" if point.heard == "contradicted" else None  # what was wrong at first, and was put right
    elif any(each is point for each, _ in row.kept):
        word, css, kind = KEPT, "contra", "no"
    elif point.differs:
        own = "you said it" if point.met else "you did not say it"
        why = f"{why} By your own judgement {own}; that is kept and does not count.".strip()
    evidence = tuple(_beside(row, each) for each in point.evidence) if kind == "no" else point.evidence
    if point.credit and kind == "ok" and not any(stands_in(row.said, each) for each in evidence):
        near = nearest(point.point, row.said)
        evidence, taken = ((near,), "The nearest is underlined.") if near else ((), "No one of them says all of it.")
        why = f"{why} It takes more than one sentence of yours. {taken}".strip()
    worth = round(worth, 1)  # sevenths of a share say nothing to who reads them
    return Finding(point.id, point.point, word, css, round(worth * point.counts, 1), worth, kind, evidence, why)


def _another(row: Row, point: str) -> str:
    """What is said of a point, once and again when it was asked about, that is not the point."""
    said = [each.said for each in row.pushed if each.point == point]
    said += [words for each in row.rubric if each.id == point for words in each.evidence]
    return f"Another {'reason' if any(map(_REASON.search, said)) else 'answer'} than this one"


def _judged_alone(row: Row, point: JudgedPoint, worth: float) -> Finding:
    """A point of an earlier version's card: judged by the candidate, beside the sentence nearest to it."""
    near = nearest(point.point, row.said)
    evidence = (near,) if near else ()
    if point.met:
        return Finding(point.id, point.point, "Met", "met", worth, worth, "ok", evidence)
    if point.met is None:
        why = "" if near else NOT_HEARD
        return Finding(point.id, point.point, "To judge", "unsure", 0.0, worth, "un", evidence, why)
    why = "The nearest you came is underlined." if near else NOT_HEARD
    return Finding(point.id, point.point, "Missed", "missed", 0.0, worth, "un", evidence, why)
