"""From answers to a scorecard. Pure: questions are graded where all are, in `app.grading.questions`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from types import MappingProxyType
from typing import Any

from markupsafe import Markup

from app.codelabs.service import Outcome
from app.content.coding import TaskQuestion, as_called_now
from app.content.interview_schemas import Interview
from app.content.live import ExpressionError, Expressions
from app.content.markdown import render, render_inline
from app.grading.grade import Grade
from app.grading.hints import share_left
from app.grading.levels import NAMES, Level, level_of, share
from app.grading.questions import ChoiceQuestion, LayoutQuestion, NumberQuestion, OrderQuestion
from app.grading.rubrics.grader import Verdict, grade
from app.interview.at_levels import at_levels
from app.interview.givens import GivenReply, replies_to
from app.interview.hints import said_hints
from app.interview.parts import NOTHING_ASKED, PUSHED_SHARE, Part, Reactions, Values, built_on, known_to, parts_of
from app.interview.prompts import prompt
from app.interview.questions import choice_of, leads_somewhere, question_of, rubric_of
from app.interview.reacting import Reply, heard_in_replies
from app.reveal.number import SaidNumber, said_number, slip_of
from app.words import capital

NOT_ASKED, NO_ANSWER = "not asked", "no answer"
TO_JUDGE = "to judge"  # in a card of a version that did not hear words: they count nothing until their author judges
CORRECTED = "corrected"  # a wrong answer not in words that was put right when it was questioned
BETTER = "better"  # still wrong when it was questioned, and worth more than before
UNPUSHED = ("harder", "own")  # what is worth no points, and is not asked about again
VERDICTS = {"correct": "right", "wrong": "wrong", "invalid": "not readable"}

_NOT_REACHED = "It builds on a question that was not answered."
_NO_NUMBER = "The question before it had no number to follow up."
_NOT_IN_IT = "It was not asked in this sitting."
_LEADS_NOWHERE = "Your own figure before it leads to no number here."


@dataclass(frozen=True)
class JudgedPoint:
    """A point of a text answer's rubric. `heard` is the grader's verdict on `evidence`, None in an older card.

    `met` is the candidate's own judgement, None before there is one. It is kept beside the grader's, and decides where
    that is unsure. `credit` is what counts of the answer, 0 to 1; `pushed` what counts of the replies to probes, which
    say it in `reply`. `criterion` is what a debrief counts it for.
    """

    id: str
    point: str
    weight: int
    met: bool | None
    heard: Verdict | None = None
    credit: float = 0.0
    evidence: tuple[str, ...] = ()
    half: str = ""
    pushed: float = 0.0
    reply: tuple[str, ...] = ()
    criterion: str = "correctness"

    @property
    def is_open(self) -> bool:
        """Whether the grader was unsure and the candidate has not decided."""
        return self.heard == "unsure" and self.met is None

    @property
    def counts(self) -> float:
        """The share of its weight that counts: before there was a grader, the candidate's word alone."""
        return max(self.credit, self.pushed) if self.heard else float(bool(self.met))

    @property
    def differs(self) -> bool:
        """Whether grader and candidate judged it otherwise."""
        return self.met is not None and self.heard not in (None, "unsure") and self.met != (self.heard == "met")

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> JudgedPoint:
        """A point as it was stored, now or in an earlier version."""
        evidence, reply = tuple(stored.get("evidence", ())), tuple(stored.get("reply", ()))
        return cls(**{**stored, "evidence": evidence, "reply": reply})


@dataclass(frozen=True)
class Pushed:
    """What the interviewer asked on account of an answer, and what was said to it. `asked` is HTML; a probe has the
    `point` that it asks for."""

    part: str
    asked: str
    said: str
    verdict: str
    point: str = ""
    evidence: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Pushed:
        """As it was stored."""
        return cls(**{**stored, "evidence": tuple(stored["evidence"])})


Programs = Mapping[str, Outcome]  # what came of programs that were handed in, by the part they answer


@dataclass(frozen=True)
class Row:
    """What became of one part. `asked` and `explanation` are HTML; `key` and `said_text` are as a person reads them.

    `slip` is a wrong number's mistake as a title says it, `number` what there is to draw of it. `notes` are what was
    heard in words beyond the points: wrong sums, mere terms. `givens` are what was asked for or had to be told,
    `hints` those that were opened, in plain words; `checks`, of a program or a layout, what was looked at and whether
    it held. `placed` has for each place of an order what belongs there and what was put there; `criterion` is what its
    question says that it counts for; `ticked`, of a set, how many right ones were ticked, how many there are, and how
    many wrong ones were ticked. `at_levels` is the same answer at each level, as plain text.
    """

    id: str
    title: str
    kind: str
    said: str
    points: float
    verdict: str
    reached: float = 0.0
    key: str | None = None
    message: str = ""
    explanation: str = ""
    cure: str | None = None
    said_text: str | None = None
    rubric: tuple[JudgedPoint, ...] = ()
    exemplar: str = ""
    asked: str = ""
    slip: str = ""
    number: SaidNumber | None = None
    notes: tuple[str, ...] = ()
    pushed: tuple[Pushed, ...] = ()
    is_harder: bool = False
    givens: tuple[GivenReply, ...] = ()
    hints: tuple[str, ...] = ()
    checks: tuple[tuple[str, bool], ...] = ()
    placed: tuple[tuple[str, str], ...] = ()
    criterion: str | None = None
    ticked: tuple[int, int, int] | None = None
    at_levels: tuple[tuple[str, str], ...] = ()

    @property
    def chip(self) -> str:
        """Its verdict as it is shown in a word or two: of a set that is right in part, how many of how many."""
        if self.verdict != VERDICTS["wrong"] or not self.ticked or not self.ticked[0]:
            return self.verdict
        right, of, wrong = self.ticked
        return f"{right} of {of}" + (f", {wrong} wrong" if wrong else "")

    @property
    def level(self) -> Level:
        """That of an answer in words, by itself."""
        return level_of(share(self.reached, self.points)) if self.points else "no hire"

    @property
    def worth(self) -> float:
        """What opened hints left of its points."""
        return self.points * share_left(len(self.hints))

    @property
    def is_evidence(self) -> bool:
        """Whether it was asked, answered and judged, and so says what the candidate knows: a sitting may end before."""
        return bool(self.points) and self.verdict not in (TO_JUDGE, NOT_ASKED, NO_ANSWER)

    @property
    def lost(self) -> float:
        """The points that were not reached; none while they are to be judged."""
        return 0.0 if self.verdict == TO_JUDGE else self.points - self.reached

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Row:
        """A row as it was stored, now or in an earlier version."""
        number = SaidNumber.from_json(stored["number"]) if stored.get("number") else None
        rubric = tuple(JudgedPoint.from_json(point) for point in stored.get("rubric", ()))
        pushed = tuple(Pushed.from_json(each) for each in stored.get("pushed", ()))
        notes = tuple(stored.get("notes", ()))
        givens = tuple(GivenReply.from_json(each) for each in stored.get("givens", ()))
        read = {"rubric": rubric, "number": number, "notes": notes, "pushed": pushed, "givens": givens}
        read["ticked"] = tuple(stored["ticked"]) if stored.get("ticked") else None
        read["hints"] = tuple(stored.get("hints", ()))
        read["at_levels"] = tuple((level, text) for level, text in stored.get("at_levels", ()))
        read["placed"] = tuple((right, mine) for right, mine in stored.get("placed", ()))
        read["checks"] = tuple((str(title), bool(held)) for title, held in stored.get("checks", ()))
        return cls(**{**stored, **read, "id": as_called_now(stored["id"])})


@dataclass(frozen=True)
class Scorecard:
    """Every part of a sitting, graded."""

    rows: tuple[Row, ...] = ()

    @property
    def points(self) -> float:
        return sum(row.points for row in self.rows)

    @property
    def reached(self) -> float:
        return round(sum(row.reached for row in self.rows), 2)

    @property
    def score(self) -> float:
        """The share of the points reached, 0 to 1."""
        return share(sum(row.reached for row in self.rows), self.points)

    @property
    def to_judge(self) -> list[str]:
        """The parts whose words nobody has heard yet; only a card of an earlier version has any."""
        return [row.id for row in self.rows if row.verdict == TO_JUDGE]

    @property
    def unsure(self) -> list[str]:
        """The parts with points that the grader leaves to the candidate. Until then they count as missed."""
        return [row.id for row in self.rows if any(point.is_open for point in row.rubric)]

    @property
    def level(self) -> Level | None:
        """None while there are words that nobody has heard."""
        return None if self.to_judge else level_of(self.score)

    def row(self, part_id: str) -> Row:
        return next(row for row in self.rows if row.id == part_id)

    def to_json(self) -> dict[str, object]:
        """As it is stored and exported."""
        return {
            "rows": [asdict(row) for row in self.rows],
            "points": self.points,
            "reached": self.reached,
            "score": self.score,
            "level": self.level,
            "to_judge": self.to_judge,
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Scorecard:
        """What `to_json` stored, now or in an earlier version."""
        return cls(tuple(Row.from_json(each) for each in stored["rows"]))


def scorecard(
    interview: Interview,
    values: Values,
    answers: Mapping[str, str],
    judged: Mapping[str, Mapping[str, bool]],
    reactions: Reactions = NOTHING_ASKED,
    programs: Programs = MappingProxyType({}),
) -> Scorecard:
    """Every part graded. `judged` are the candidate's own judgements of text answers, by part and point; `reactions`,
    what was asked on account of answers: it counts for the part it is about."""
    sitting = _Sitting(parts_of(interview, reactions), values, answers, built_on(answers, reactions), judged, programs)
    return Scorecard(tuple(_row(part, sitting) for part in sitting.parts if part.role in (*UNPUSHED, "asked")))


def with_levels(
    card: Scorecard, interview: Interview, values: Values, answers: Mapping[str, str], reactions: Reactions
) -> Scorecard:
    """The card with the same answer at each level beside every answer in words. It takes a while, so it is kept."""
    own, words = built_on(answers, reactions), [each for each in parts_of(interview) if each.kind == "text"]
    told_at = {
        part.id: at_levels(
            rubric_of(part, known), _text(part.question.exemplar, known), _text(part.question.weak, known)
        )
        for part in words
        if (known := known_to(part, values, own)) and card.row(part.id).said
    }
    return Scorecard(tuple(replace(row, at_levels=told_at.get(row.id, row.at_levels)) for row in card.rows))


def _text(source: str | None, known: Values) -> str:
    expressions = Expressions(known)
    return " ".join(expressions.text(expressions.fill(source or "")).split())


@dataclass(frozen=True)
class _Sitting:
    """What there is to grade. `built_on` are the answers that later parts go by."""

    parts: Sequence[Part]
    values: Values
    answers: Mapping[str, str]
    built_on: Mapping[str, str]
    judged: Mapping[str, Mapping[str, bool]]
    programs: Programs

    def said(self, part: Part) -> str:
        return self.answers.get(part.id, "").strip()

    def pushed(self, part: Part) -> list[Part]:
        """What the interviewer asked about the answer to `part`."""
        if part.role in UNPUSHED:
            return []
        about = [each for each in self.parts if each.role in ("again", "probe") and each.question is part.question]
        return [each for each in about if each.is_follow_up == part.is_follow_up]


def _row(part: Part, sitting: _Sitting) -> Row:
    known = known_to(part, sitting.values, sitting.built_on)
    row = Row(part.id, part.title, part.kind, sitting.said(part), part.points, NOT_ASKED)
    row = replace(row, is_harder=part.role in UNPUSHED)
    if known is None:
        return replace(row, message=_NO_NUMBER if part.builds_on_own else _NOT_REACHED)
    if not leads_somewhere(part, known):
        return replace(row, message=_LEADS_NOWHERE)
    try:
        row = replace(row, asked=_asked(part, sitting))
        row = replace(row, explanation=str(render(part.source.explanation, Expressions(known))))
        return _BY_KIND.get(part.kind, _graded)(row, part, known, sitting)
    except ExpressionError:
        if part.goes_by_own_numbers:
            return replace(row, message=_LEADS_NOWHERE, explanation="")
        raise


def _asked(part: Part, sitting: _Sitting) -> str:
    return str(prompt(part, sitting.values, sitting.built_on) or "")


def _graded(row: Row, part: Part, known: Values, sitting: _Sitting) -> Row:
    """The row of a number, of what was chosen, arranged or laid out, or of a plan."""
    question = question_of(part, known)
    row = replace(
        row, key=question.key_text, hints=said_hints(part, sitting.answers), criterion=part.question.criterion
    )
    if not row.said:
        return replace(row, verdict=NO_ANSWER)
    grade = question.grade(row.said)
    number = said_number(question, row.said, grade) if isinstance(question, NumberQuestion) else None
    row = replace(
        row,
        slip=slip_of(number, grade),
        number=number,
        verdict=VERDICTS[grade.status],
        reached=row.worth * grade.credit,
        message=grade.message,
        ticked=_ticked(question, row.said) if part.kind == "set" and isinstance(question, ChoiceQuestion) else None,
        cure=grade.cure,
        said_text=question.said(row.said),
        placed=_placed(question, row.said) if isinstance(question, OrderQuestion) else (),
    )
    if isinstance(question, LayoutQuestion):
        row = _laid_out(row, part, known, question)
    for again in sitting.pushed(part):
        row = _questioned(row, again, known, question.grade(sitting.said(again)), sitting)
    return row


def _ticked(question: ChoiceQuestion, said: str) -> tuple[int, int, int]:
    chosen = question.chosen(said) or []
    right = sum(each.correct for each in chosen)
    return right, len(question.right), len(chosen) - right


def _laid_out(row: Row, part: Part, known: Values, question: LayoutQuestion) -> Row:
    """The row of a layout with what it keeps to and breaks, and known layouts with the level each comes to."""
    expressions = Expressions(known)
    levels = []
    for each in part.question.layouts:
        said = expressions.text(expressions.fill(each.said))
        levels.append((each.level, f"{capital(question.said(said))}. {question.grade(said).message}"))
    levels.sort(key=lambda each: NAMES.index(each[0]))
    checks = tuple((each.text, each.held) for each in question.reasons(row.said))
    return replace(row, checks=checks, exemplar=question.key_text, at_levels=tuple(levels))


def _placed(question: OrderQuestion, said: str) -> tuple[tuple[str, str], ...]:
    placed = question.placed(said) or ()
    pairs = zip(question.beside(placed), placed, strict=False)
    return tuple((right.text.striptags(), mine.text.striptags()) for right, mine in pairs)


def _asked_for(row: Row, part: Part, known: Values, sitting: _Sitting) -> Row:
    """The row of what was asked for before computing: what is needed and was not earns nothing, what does not matter
    takes back as much."""
    if not row.said and any(part.question in each.builds_on and sitting.said(each) for each in sitting.parts):
        return replace(row, points=0.0, verdict=NOT_ASKED, message=_NOT_IN_IT)  # begun before the question was there
    row = _graded(row, part, known, sitting)
    if not row.said:
        return row
    givens = replies_to(part, known, row.said)
    asked = sum(each.standing == "right" for each in givens)
    needed = asked + sum(each.standing == "missed" for each in givens)
    if row.verdict == "right":
        return replace(row, givens=givens)
    left_out = {each.id for each in givens if each.standing == "missed"}
    why = [option.message for option in choice_of(part, known).options if option.id in left_out]
    message = " ".join(why) or "All that was needed was asked for, and more that does not matter here."
    return replace(row, givens=givens, verdict=f"{asked} of {needed} asked for", message=message)


def _questioned(row: Row, again: Part, known: Values, grade: Grade, sitting: _Sitting) -> Row:
    """The row of a wrong answer not in words with what was said when it was questioned: put right, it earns half of
    what it lost; made better, half of what that gained."""
    said = sitting.said(again)
    if said and row.kind in ("choice", "set"):
        said = choice_of(again, known).said(said)
    gained = PUSHED_SHARE * max(0.0, row.worth * grade.credit - row.reached) if said else 0.0
    became = BETTER if gained and grade.status == "wrong" else VERDICTS[grade.status]
    pushed = Pushed(again.id, _asked(again, sitting), said, became if said else NO_ANSWER)
    row = replace(row, pushed=(*row.pushed, pushed))
    if row.verdict != VERDICTS["wrong"]:
        return row
    verdict = CORRECTED if grade.status == "correct" else row.verdict
    return replace(row, verdict=verdict, reached=row.reached + gained)


def _heard(row: Row, part: Part, known: Values, sitting: _Sitting) -> Row:
    """The row of an answer in words: a share of the points for each point of the rubric that was heard in it, half of
    it for one that was said only when it was asked for."""
    judged = sitting.judged.get(part.id)
    exemplar = str(render_inline(part.question.exemplar or "", Expressions(known)))
    rubric = rubric_of(part, known)
    heard = grade(rubric, row.said)
    found = heard if judged is None else grade(rubric, row.said, judged)
    probes = sitting.pushed(part)
    replies = {**heard_in_replies(rubric, probes, known, sitting.answers), **_said_of_own_layout(part, sitting)}
    points = tuple(
        JudgedPoint(
            each.id,
            _plain(each.text, known),
            each.weight,
            None if judged is None else bool(judged.get(each.id)),
            before.verdict,
            after.credit,
            after.evidence,
            each.half or "",
            PUSHED_SHARE * replies[each.id].credit if each.id in replies and not before.credit else 0.0,
            replies[each.id].evidence if each.id in replies and not before.credit else (),
            each.criterion,
        )
        for each, before, after in zip(part.question.rubric, heard.points, found.points, strict=True)
    )
    pushed = tuple(_probed(probe, replies, sitting) for probe in probes)
    row = replace(row, rubric=points, exemplar=exemplar, pushed=pushed)
    if not row.said:
        return replace(row, verdict=NO_ANSWER)
    met = sum(each.credit > 0 for each in points)
    late = sum(each.counts > each.credit for each in points)
    verdict = f"{met} of {len(points)} points heard" + (f", {late} more when asked" if late else "")
    reached = part.points * sum(each.weight * each.counts for each in points) / sum(each.weight for each in points)
    return replace(row, verdict=verdict, reached=reached, notes=found.notes)


def _said_of_own_layout(part: Part, sitting: _Sitting) -> dict[str, Reply]:
    """A right number about the own layout is what the point that it stands in for lacked."""
    asked = [each for each in sitting.parts if each.question is part.question and each.own and each.own.instead_of]
    found = {}
    for each in asked:
        known, said = known_to(each, sitting.values, sitting.built_on), sitting.said(each)
        if known and said and each.own and question_of(each, known).grade(said).status == "correct":
            found[each.own.instead_of or ""] = Reply("met", 1.0, (said,))
    return found


def _probed(probe: Part, replies: Mapping[str, Reply], sitting: _Sitting) -> Pushed:
    """A probe with what was heard in the reply to it."""
    assert probe.point is not None, "asked of probes alone"
    said, reply = sitting.said(probe), replies.get(probe.point.id)
    verdict = reply.verdict if reply else NO_ANSWER
    return Pushed(probe.id, _asked(probe, sitting), said, verdict, probe.point.id, reply.evidence if reply else ())


def _run(row: Row, part: Part, known: Values, sitting: _Sitting) -> Row:
    """The row of a program: of its points the share of the checks that held, less what hints cost. Where it could not
    be judged it was not asked."""
    row = replace(row, hints=said_hints(part, sitting.answers))
    if isinstance(part.question, TaskQuestion):
        program = Markup('<pre class="log" tabindex="0">{}</pre>').format(part.question.lab.reference.rstrip())
        row = replace(row, exemplar=str(program))
    judged = sitting.programs.get(part.id)
    if judged is None:
        return replace(row, said="", verdict=NO_ANSWER)
    if judged.why_not:
        return replace(row, points=0.0, verdict=NOT_ASKED, message=judged.why_not)
    held = sum(each for _, each in judged.checks)
    says = f"{held} of {len(judged.checks)} checks held"
    return replace(
        row,
        verdict="right" if judged.share == 1 else says,
        reached=row.worth * judged.share,
        said_text=says,
        slip=judged.mistake,
        message=judged.says,
        cure=judged.cure,
        checks=judged.checks,
    )


def _plain(text: str, known: Values) -> str:
    return str(render_inline(text, Expressions(known)).striptags())


_BY_KIND: Mapping[str, Callable[[Row, Part, Values, _Sitting], Row]] = {
    "text": _heard,
    "givens": _asked_for,
    "coding": _run,
}
