"""What the pages of a rubric show, ready made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from markupsafe import Markup

from app.content.live import ExpressionError, Expressions
from app.content.markdown import render, render_inline, render_plain
from app.content.rubric_schemas import RubricFile
from app.grading.levels import NAMES, is_at_least, level_of
from app.grading.rubrics.quotes import topic
from app.reveal.words import (
    CLASSES,
    UNDERLINED,
    Finding,
    Marked,
    cut_short,
    mark,
    named,
    nearest,
    sentences,
    why_less,
    why_missed,
)
from app.rubrics.models import RubricAnswer
from app.words import counted, listed, lowered

CORRECTED = "Not so. "  # before what is so, at a point that a false sentence contradicts
FALSE = "Not so"  # the word of a false sentence that is about no point
CRITICAL = "Critical"
SAYS_A_POINT = 0.5  # of a point's words in a text that answers it


@dataclass(frozen=True)
class PointView:
    """A point of a rubric as text."""

    id: str
    text: Markup
    half: str | None
    weight: int

    @property
    def name(self) -> str:
        """What it is known by in a sentence."""
        return named(self.text.striptags())


@dataclass(frozen=True)
class RubricView:
    """A rubric's texts with their numbers computed."""

    question: Markup
    question_plain: str
    points: tuple[PointView, ...]
    exemplars: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Opinion:
    """What the second grader made of one point: `claimed` where it quoted nothing that would bear it out."""

    verdict: str
    passage: str | None
    claimed: str | None
    differs: bool


@dataclass(frozen=True)
class Row:
    """What became of one point: the grader's verdict, and the learner's where it was unsure."""

    point: PointView
    verdict: str
    css: str
    credit: float
    evidence: tuple[str, ...]
    asks: bool
    judged: str | None
    second: Opinion | None = None


@dataclass(frozen=True)
class ResultView:
    """A graded answer, ready to show."""

    rows: tuple[Row, ...]
    critical: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]
    lifted_by: tuple[str, ...]
    reached: float
    total: int
    to_judge: int
    marked: Marked
    second: Mapping[str, Any] | None = None

    @property
    def by_id(self) -> dict[str, Row]:
        return {row.point.id: row for row in self.rows}

    @property
    def heaviest(self) -> PointView | None:
        """The point that lost most; None where none was lost."""
        lost = {row.point.id: row.point.weight * (1 - row.credit) for row in self.rows}
        most = max(self.rows, key=lambda row: lost[row.point.id], default=None)
        return most.point if most is not None and lost[most.point.id] else None

    @property
    def is_alone(self) -> bool:
        """Whether no other point lost as much as the heaviest."""
        lost = sorted(row.point.weight * (1 - row.credit) for row in self.rows)
        return len(lost) < 2 or lost[-1] > lost[-2]

    @property
    def reason(self) -> str:
        """What held the answer back most, as a title goes on: a critical mistake, else what is known to be
        false, else the point that lost most. No sentence is called wrong here that is only surmised to be."""
        if self.critical:
            return f"it {lowered(self.critical[0][0]).rstrip('.')}"
        findings = [each.finding for each in self.marked.notes]
        false = [each for each in findings if each.verdict == FALSE or each.why.startswith(CORRECTED)]
        if false:
            worst = max(false, key=lambda finding: finding.points)
            return f"“{cut_short(worst.evidence[0])}” is not so"
        lost = self.heaviest
        if lost is None:
            return "nothing missed"
        return {
            "contradicted": f"“{lost.name}” was heard the other way round",
            "half met": f"only half was heard of “{lost.name}”",
            "unsure": f"“{lost.name}” was not heard outright",
        }.get(self.by_id[lost.id].verdict, f"nothing was heard of “{lost.name}”")

    @property
    def definitions(self) -> str:
        """The sentences that lifted it to the floor, as a sentence goes on with them."""
        quotes = [f"“{cut_short(each)}”" for each in self.lifted_by]
        return f"{listed(quotes)} {'was' if len(quotes) == 1 else 'were'}"

    @property
    def counts(self) -> str:
        """How many points did not count in full, and what became of them; empty where all did."""
        counts = Counter(row.verdict for row in self.rows)
        left = [(word, counts[word]) for word in ("contradicted", "missed", "unsure", "half met") if counts[word]]
        first = [counted(number, "point") + f" {word}" for word, number in left[:1]]
        return listed([*first, *(f"{number} {word}" for word, number in left[1:])])

    @property
    def lost(self) -> tuple[Row, ...]:
        """The points that did not count in full, what lost most first."""
        left = [row for row in self.rows if row.credit < 1]
        return tuple(sorted(left, key=lambda row: row.point.weight * (row.credit - 1)))

    @property
    def compared(self) -> int:
        """How many points both graders decided."""
        return sum(row.second is not None and not row.asks and row.second.claimed is None for row in self.rows)

    @property
    def agreed(self) -> int:
        return self.compared - sum(row.second is not None and row.second.differs for row in self.rows)


def rubric_view(rubric: RubricFile) -> RubricView:
    """The texts of a rubric; those of the exemplars are its levels, best first."""
    values = rubric.values()
    points = tuple(
        PointView(each.id, render_inline(each.text, Expressions(values)), each.half, each.weight)
        for each in rubric.points
    )
    exemplars = tuple((kind, rubric.exemplar(kind)) for kind in NAMES)
    question = Expressions(values)
    return RubricView(
        render(rubric.question, Expressions(values)), render_plain(rubric.question, question), points, exemplars
    )


def readable(then: RubricFile, now: RubricFile) -> RubricFile:
    """`then`, or `now` where a formula that `then` names is gone."""
    try:
        rubric_view(then)
    except ExpressionError:
        return now
    return then


def result_view(rubric: RubricFile, answer: RubricAnswer) -> ResultView:
    """A stored grade beside its rubric. Points that a later revision dropped are left out."""
    points = {each.id: each for each in rubric_view(rubric).points}
    second = answer.second or {}
    opinions = {each["id"]: each for each in second.get("points", ())}
    rows = tuple(
        _row(points[each["id"]], each, answer.judged, opinions.get(each["id"]))
        for each in answer.grade["points"]
        if each["id"] in points
    )
    texts = {each.id: each.text for each in rubric.critical}
    critical = tuple(
        (texts.get(each["id"], each["id"]), " ".join(each["evidence"])) for each in answer.grade["critical"]
    )
    total = sum(each.weight for each in rubric.points)
    findings = [*_findings(rows, answer.text), *_mistakes(answer.grade["critical"], texts)]
    findings = _corrected(findings, answer.grade.get("corrections", ()))  # earlier grades have them among their notes
    is_lifted = not is_at_least(level_of(answer.score), answer.level)
    return ResultView(
        rows,
        critical,
        tuple(answer.grade["notes"]),
        tuple(answer.grade.get("lifted_by", ())) if is_lifted else (),
        answer.score * total,
        total,
        sum(row.asks and row.judged is None for row in rows),
        mark(answer.text, findings),
        answer.second,
    )


def lost_on(result: ResultView, text: str) -> PointView | None:
    """The point that did not count in full and that `text` says most about; None where it says hardly anything of one.
    Of those that it says all of as well, the one that lost most."""
    said = topic(text)
    shares = [
        (len(about & said) / len(about), row.point.weight * (1 - row.credit), row)
        for row in result.rows
        if row.credit < 1 and (about := topic(row.point.text.striptags()))
    ]
    share, _, row = max(shares, key=lambda each: each[:2], default=(0.0, 0.0, None))
    return row.point if row is not None and share >= SAYS_A_POINT else None


def lost_first(
    result: ResultView, related: Sequence[dict[str, str]], answers: Mapping[str, PointView | None]
) -> list[dict[str, str]]:
    """Where a rubric leads: first the cards about what did not count in full, what lost most before the rest, and last,
    where anything was lost, those that are about nothing of it. `answers` has a card's point by its address."""
    if result.heaviest is None:
        return list(related)

    def lost(link: dict[str, str]) -> float:
        if link["href"] not in answers:
            return 0.0
        point = answers[link["href"]]
        return point.weight * (1 - result.by_id[point.id].credit) if point else -1.0

    return sorted(related, key=lost, reverse=True)


def _corrected(findings: Sequence[Finding], corrections: Sequence[Mapping[str, str]]) -> list[Finding]:
    """The findings with what is so instead: at the first that rests on a false sentence, where it is said of others
    that the same sentence is against them too, or as a finding of its own where the sentence is about no point."""
    corrected = list(findings)
    for correction in corrections:
        said, so = correction["sentence"], correction["so"]
        about = [at for at, each in enumerate(findings) if each.kind == "no" and said in each.evidence]
        if not about:
            shown = Markup.escape(f"“{cut_short(said)}”")
            corrected.append(Finding(f"false-{len(corrected)}", shown, FALSE, "contra", 0.0, 0.0, "no", (said,), so))
            continue
        corrected[about[0]] = replace(findings[about[0]], why=f"{CORRECTED}{so}")
        for at in about[1:]:
            if findings[at].verdict == CRITICAL:  # it is that sentence, and says what it does to the level
                continue
            corrected[at] = replace(findings[at], why="The same sentence is the opposite of this as well.")
    return corrected


def _findings(rows: Sequence[Row], answer: str) -> list[Finding]:
    """What became of each point. Of what was missed the nearest sentence is quoted that nothing rests on, each once."""
    resting = [said for row in rows for said in row.evidence]
    free = [each for each in sentences(answer) if not any(each in said or said in each for said in resting)]
    found = []
    for row in rows:
        close = nearest(row.point.text.striptags(), "\n".join(free)) if row.verdict == "missed" else None
        free = [each for each in free if each != close]
        shown = row.judged or ("met" if row.css == "met" else row.verdict)
        found.append(
            Finding(
                row.point.id,
                row.point.text,
                f"{row.verdict.capitalize()}{', you judged' if row.judged else ''}",
                row.css,
                row.credit * row.point.weight,
                row.point.weight,
                UNDERLINED[shown],
                row.evidence,
                _why(row, answer, close),
            )
        )
    return found


def _why(row: Row, answer: str, close: str | None) -> str:
    """Why a point did not count in full; empty where it did. `close` is the sentence nearest to a missed one."""
    if row.judged:
        return "" if row.judged == "met" else "The underlined words do not say it, by your own judgement."
    if row.verdict == "missed":
        return why_missed(row.point.half, close)
    if row.verdict == "contradicted" and row.evidence:
        return f"“{cut_short(row.evidence[0])}” was heard as the opposite of it."
    verdict = "met" if row.css == "met" else row.verdict
    return why_less(verdict, row.credit, row.point.text.striptags(), row.point.half, answer)


def _mistakes(critical: Sequence[Mapping[str, Any]], texts: Mapping[str, str]) -> list[Finding]:
    """Critical mistakes among the notes: they cost no points of their own, but hold the level."""
    return [
        Finding(
            f"critical-{each['id']}",
            texts.get(each["id"], each["id"]),
            CRITICAL,
            "contra",
            0.0,
            0.0,
            "no",
            tuple(each["evidence"]),
            "It holds the level, whatever the points.",
        )
        for each in critical
    ]


def _row(
    point: PointView, graded: dict[str, Any], judged: dict[str, str], second: Mapping[str, Any] | None = None
) -> Row:
    verdict, decision = str(graded["verdict"]), judged.get(point.id)
    shown = decision or verdict
    word = "half met" if shown == "met" and graded["credit"] == 0.5 else shown
    opinion = _opinion(second, word if verdict != "unsure" else None) if second else None
    credit = float(decision == "met") if decision else float(graded["credit"])
    return Row(point, word, CLASSES[shown], credit, tuple(graded["evidence"]), verdict == "unsure", decision, opinion)


def _opinion(second: Mapping[str, Any], first: str | None) -> Opinion:
    """The second grader's verdict beside the built-in one, if that is sure."""
    claimed = second.get("claimed")
    differs = claimed is None and first is not None and second["verdict"] != first
    return Opinion(second["verdict"], second["quote"], claimed, differs)
