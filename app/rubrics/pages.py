"""What the pages of a rubric show, ready made."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from app.content.live import ExpressionError, Expressions
from app.content.markdown import render, render_plain
from app.content.rubric_schemas import RubricFile
from app.grading.levels import NAMES, Level, Threshold, is_at_least, level_of
from app.grading.rubrics.points import Judgement, taken_back
from app.reveal.words import Marked, Note, cut_short, mark
from app.rubrics.findings import CORRECTED, FALSE, findings
from app.rubrics.grading import grade_text
from app.rubrics.models import RubricAnswer
from app.rubrics.rows import TAKEN_BACK, PointView, Row, make_row, point_views
from app.words import counted, listed, lowered

MOST_IN_A_TITLE = 10  # words of what a title names: it stands beside a button, and on a phone …
MOST_OF_A_MISTAKE = 16  # … and of a critical mistake, which decides


MOST_AND_LEAST: tuple[Judgement, Judgement] = ("met", "missed")


@dataclass(frozen=True)
class RubricView:
    """A rubric's texts with their numbers computed."""

    question: Markup
    question_plain: str
    points: tuple[PointView, ...]
    exemplars: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Reach:
    """What an answer comes to if the learner says no to every point that waits for them, and if they say yes."""

    least: float
    lowest: Level
    most: float
    highest: Level

    @property
    def names(self) -> tuple[Level, ...]:
        """The levels that it may come to, best first."""
        return NAMES[NAMES.index(self.highest) : NAMES.index(self.lowest) + 1]

    @property
    def levels(self) -> str:
        """These levels as a title says them."""
        return self.lowest if self.lowest == self.highest else f"{self.lowest} to {self.highest}"


@dataclass(frozen=True)
class ResultView:
    """A graded answer, ready to show; `reach` is what it may come to while points wait for the learner."""

    rows: tuple[Row, ...]
    critical: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]
    lifted_by: tuple[str, ...]
    reached: float
    total: int
    marked: Marked
    second: Mapping[str, Any] | None = None
    reach: Reach | None = None

    @property
    def to_judge(self) -> int:
        """How many points wait for the learner."""
        return sum(row.is_open for row in self.rows)

    @property
    def unheard(self) -> tuple[Note, ...]:
        """The notes on what nothing was heard of."""
        return tuple(each for each in self.marked.notes if each.finding.id in self._silent)

    @property
    def heard(self) -> tuple[Note, ...]:
        """The notes on what something was heard of, and on what else stands in the answer."""
        return tuple(each for each in self.marked.notes if each.finding.id not in self._silent)

    @property
    def _silent(self) -> frozenset[str]:
        return frozenset(row.point.id for row in self.rows if row.graded == "missed")

    def short_of(self, threshold: Threshold) -> float:
        """How many points are missing to a better level: points come in halves."""
        return math.ceil(round(2 * (threshold.least * self.total - self.reached), 6)) / 2

    @property
    def by_id(self) -> dict[str, Row]:
        return {row.point.id: row for row in self.rows}

    @property
    def heaviest(self) -> PointView | None:
        """The point that lost most; None where none was lost."""
        return self.lost[0].point if self.lost else None

    @property
    def reason(self) -> str:
        """What held the answer back most, as a title goes on: a critical mistake, else what is known to be
        false, else the point that lost most. No sentence is called wrong here that is only surmised to be."""
        if self.critical:
            return f"it {lowered(cut_short(self.critical[0][0], MOST_OF_A_MISTAKE))}"
        known = [each.finding for each in self.marked.notes]
        false = [each for each in known if each.verdict == FALSE or each.why.startswith(CORRECTED)]
        if false:
            worst = max(false, key=lambda finding: finding.points)
            return f"“{cut_short(worst.evidence[0], MOST_IN_A_TITLE)}” is not so"
        lost = self.heaviest
        if lost is None:
            return "nothing missed"
        name = cut_short(lost.name, MOST_IN_A_TITLE)
        lifted = "lifted by its definitions; " if self.lifted_by else ""
        return lifted + {
            "contradicted": f"“{name}” was heard the other way round",
            "half met": f"only half was heard of “{name}”",
            "unsure": f"“{name}” was not heard outright",
            TAKEN_BACK: f"you took back “{name}”",
        }.get(self.by_id[lost.id].verdict, f"nothing was heard of “{name}”")

    @property
    def definitions(self) -> str:
        """The sentences that lifted it to the floor, as a sentence goes on with them."""
        quotes = [f"“{cut_short(each)}”" for each in self.lifted_by]
        return f"{listed(quotes)} {'was' if len(quotes) == 1 else 'were'}"

    @property
    def counts(self) -> str:
        """How many points did not count in full, and what became of them; empty where all did."""
        counts = Counter(row.verdict for row in self.rows)
        left = [
            (word, counts[word])
            for word in ("contradicted", "missed", TAKEN_BACK, "unsure", "half met")
            if counts[word]
        ]
        first = [counted(number, "point") + f" {word}" for word, number in left[:1]]
        return listed([*first, *(f"{number} {word}" for word, number in left[1:])])

    @property
    def lost(self) -> tuple[Row, ...]:
        """The points that did not count in full, what lost most first."""
        return tuple(sorted((row for row in self.rows if row.credit < 1), key=lambda row: -row.lost))

    @property
    def compared(self) -> int:
        """How many points both graders decided."""
        return sum(row.second is not None and not row.is_unsure and row.second.claimed is None for row in self.rows)

    @property
    def agreed(self) -> int:
        return self.compared - sum(row.second is not None and row.second.differs for row in self.rows)


def rubric_view(rubric: RubricFile) -> RubricView:
    """The texts of a rubric; those of the exemplars are its levels, best first."""
    values = rubric.values()
    exemplars = tuple((kind, rubric.exemplar(kind)) for kind in NAMES)
    question = Expressions(values)
    return RubricView(
        render(rubric.question, Expressions(values)),
        render_plain(rubric.question, question),
        point_views(rubric),
        exemplars,
    )


def readable(then: RubricFile, now: RubricFile) -> RubricFile:
    """`then`, or `now` where a formula that `then` names is gone."""
    try:
        rubric_view(then)
    except ExpressionError:
        return now
    return then


def result_view(rubric: RubricFile, answer: RubricAnswer, may_judge: bool = True) -> ResultView:
    """A stored grade beside its rubric, which the learner `may_judge` unless it was revised since. Points that a later
    revision dropped are left out."""
    points = {each.id: each for each in point_views(rubric)}
    second = answer.second or {}
    opinions = {each["id"]: each for each in second.get("points", ())}
    false = {each["sentence"] for each in answer.grade.get("corrections", ())}
    false |= {said for each in answer.grade["critical"] for said in each["evidence"]}
    rows = tuple(
        make_row(points[each["id"]], each, answer.judged, false, opinions.get(each["id"]))
        for each in answer.grade["points"]
        if each["id"] in points
    )
    texts = {each.id: each.text for each in rubric.critical}
    grade = _as_meant(answer)
    critical = tuple((texts.get(each["id"], each["id"]), " ".join(each["evidence"])) for each in grade["critical"])
    total = sum(each.weight for each in rubric.points)
    is_lifted = not is_at_least(level_of(answer.score), answer.level)
    lifted_by = tuple(answer.grade.get("lifted_by", ())) if is_lifted else ()
    return ResultView(
        rows,
        critical,
        tuple(answer.grade["notes"]),
        lifted_by,
        answer.score * total,
        total,
        mark(answer.text, findings(rows, answer.text, grade, texts, lifted_by)),
        answer.second,
        _reach(rubric, answer, rows) if may_judge else None,
    )


def _as_meant(answer: RubricAnswer) -> Mapping[str, Any]:
    """The grade without what is known to be false in words by which the learner meant something else."""
    heard = [(each["id"], each["verdict"], each["evidence"]) for each in answer.grade["points"]]
    critical = [
        each
        for each in answer.grade["critical"]
        if not any(taken_back(said, heard, answer.judged) for said in each["evidence"])
    ]
    corrections = [
        each for each in answer.grade.get("corrections", ()) if not taken_back(each["sentence"], heard, answer.judged)
    ]
    return answer.grade | {"critical": critical, "corrections": corrections}


def _reach(rubric: RubricFile, answer: RubricAnswer, rows: Sequence[Row]) -> Reach | None:
    """What an answer may come to; None where nothing is open."""
    waiting = [row.point.id for row in rows if row.is_open]
    if not waiting:
        return None
    most, least = (grade_text(rubric, answer.text, answer.judged | dict.fromkeys(waiting, to)) for to in MOST_AND_LEAST)
    return Reach(least.score, least.level, most.score, most.level)
