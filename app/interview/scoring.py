"""From answers to a scorecard. Pure: questions are graded where all are, in `app.grading.questions`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from types import MappingProxyType

from app.content.interview_schemas import Interview
from app.content.live import ExpressionError, Expressions
from app.content.markdown import render
from app.interview.at_levels import at_levels
from app.interview.parts import (
    NOTHING_ASKED,
    PUSHED_SHARE,
    Part,
    Reactions,
    Values,
    built_on,
    known_to,
    parts_of,
)
from app.interview.questions import leads_somewhere, rubric_of
from app.interview.rows import NOT_ASKED, UNPUSHED, VERDICTS, Row
from app.interview.scorecards import Scorecard
from app.interview.scoring_plain import givens_row, graded_row, program_row
from app.interview.scoring_words import heard_row
from app.interview.to_grade import Programs, ToGrade

_NOT_REACHED = "It builds on a question that was not answered."
_NO_NUMBER = "The question before it had no number to follow up."
_LEADS_NOWHERE = "Your own figure before it leads to no number here."


def scorecard(
    interview: Interview,
    values: Values,
    answers: Mapping[str, str],
    judged: Mapping[str, Mapping[str, bool]],
    reactions: Reactions = NOTHING_ASKED,
    programs: Programs = MappingProxyType({}),
    left_out: Collection[str] = (),
) -> Scorecard:
    """Every part graded, but those of kinds that are `left_out`. `judged` are the candidate's own judgements of text
    answers, by part and point; `reactions`, what was asked on account of answers: it counts for the part it is
    about."""
    own = built_on(answers, reactions)
    sitting = ToGrade(interview, parts_of(interview, reactions), values, answers, own, judged, programs, reactions)
    graded = [each for each in sitting.parts if each.role in (*UNPUSHED, "asked") and each.kind not in left_out]
    rows = {part.id: _row(part, sitting) for part in graded}
    for part in graded:
        if part.role == "asked" and part.is_follow_up and rows[part.id].is_true_after:
            rows[part.question.id] = _given_back(rows[part.question.id])
    return Scorecard(tuple(rows.values()))


def _given_back(row: Row) -> Row:
    """The row of a wrong number whose follow-up was then answered by what is so: half of what it lost, as for who puts
    it right when it is questioned."""
    if row.verdict != VERDICTS["wrong"]:
        return row
    gained = PUSHED_SHARE * max(0.0, row.worth - row.reached)
    message = f"{row.message} In the follow-up you went by what is so: half of it is given back.".strip()
    return replace(row, reached=row.reached + gained, gained=row.gained + gained, message=message)


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


def _row(part: Part, sitting: ToGrade) -> Row:
    known = known_to(part, sitting.values, sitting.built_on)
    row = Row(part.id, part.title, part.kind, sitting.said(part), part.points, NOT_ASKED)
    row = replace(row, is_harder=part.role in UNPUSHED)
    if known is None:
        return replace(row, message=_NO_NUMBER if part.builds_on_own else _NOT_REACHED)
    if not leads_somewhere(part, known):
        return replace(row, message=_LEADS_NOWHERE)
    try:
        row = replace(row, asked=sitting.asked(part))
        row = replace(row, explanation=str(render(part.source.explanation, Expressions(known))))
        return _BY_KIND.get(part.kind, graded_row)(row, part, known, sitting)
    except ExpressionError:
        if part.goes_by_own_numbers:
            return replace(row, message=_LEADS_NOWHERE, explanation="")
        raise


_BY_KIND: Mapping[str, Callable[[Row, Part, Values, ToGrade], Row]] = {
    "text": heard_row,
    "givens": givens_row,
    "coding": program_row,
}
