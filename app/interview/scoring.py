"""From answers to a scorecard. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from app.content.live import Computed, ExpressionError, Expressions
from app.content.markdown import render, render_inline
from app.content.schemas import FollowUp, Interview, Question, Slip
from app.grading.levels import level_of, share
from app.grading.numbers import Grade, KnownSlip, grade_number, within
from app.grading.quantities import Unreadable, read_quantity
from app.theory.units import SCALES, scaled

FOLLOW_UP_SHARE = 0.4  # of a number question's points


@dataclass(frozen=True)
class Part:
    """One thing to answer in a sitting: a question, or the follow-up to it."""

    id: str
    question: Question
    is_follow_up: bool
    points: float
    builds_on: tuple[Question, ...] = ()

    @property
    def source(self) -> Question | FollowUp:
        """Where its prompt, key and slips stand."""
        return self.question.follow_up if self.is_follow_up and self.question.follow_up else self.question


def parts_of(interview: Interview) -> list[Part]:
    """Every part in order; follow-ups come right behind their question."""
    found: list[Part] = []
    by_id = {question.id: question for question in interview.questions}
    for question in interview.questions:
        earlier = tuple(by_id[each] for each in question.builds_on)
        if question.follow_up is None:
            found.append(Part(question.id, question, False, float(question.points), earlier))
        else:
            following = question.points * FOLLOW_UP_SHARE
            found.append(Part(question.id, question, False, question.points - following, earlier))
            found.append(Part(f"{question.id}.follow", question, True, following, earlier))
    return found


def read_number(part: Part, text: str) -> float:
    """A candidate's number in base units, to a question or its follow-up. Raises Unreadable."""
    unit = part.source.unit
    assert unit is not None
    return read_quantity(text, SCALES[unit][0]).value


def prompt(part: Part, values: Mapping[str, Any], answers: Mapping[str, str]) -> Markup | None:
    """What is asked; None while what it builds on has no answer that leads anywhere."""
    known = _known_to(part, values, answers)
    if known is None:
        return None
    try:
        if part.source.key:
            Expressions(known).number(part.source.key)
        return render(part.source.prompt, Expressions(_unlinked(known)))
    except ExpressionError:
        if _has_own_numbers(part):
            return None  # their figure has no consequence, as nothing divides by 0
        raise


def options(part: Part, values: Mapping[str, Any], answers: Mapping[str, str]) -> list[tuple[str, str]]:
    """The id and text of what a choice offers, without links: a formula would give it away."""
    known = _known_to(part, values, answers) or dict(values)
    return [(option.id, _plain(option.text, known)) for option in part.question.options]


def right_answer(part: Part, values: Mapping[str, Any], answers: Mapping[str, str]) -> str:
    """What would be answered to a number or a choice, after `answers` to the parts before. Raises ExpressionError."""
    if part.question.kind == "choice":
        return next(option.id for option in part.question.options if option.correct)
    assert part.source.key is not None
    assert part.source.unit is not None
    return scaled(Expressions(_known_to(part, values, answers)).number(part.source.key), part.source.unit)


def _known_to(part: Part, values: Mapping[str, Any], answers: Mapping[str, str]) -> dict[str, Any] | None:
    """What a part's expressions see: the values, and the candidate's own numbers; None where one is missing."""
    said: dict[str, float] = {}
    for earlier in part.builds_on:
        own = _own(earlier, answers)
        if own is not None:
            said[earlier.id] = own
        elif earlier.kind == "number" or not answers.get(earlier.id, "").strip():
            return None
    if not part.is_follow_up:
        return {**values, "said": said}
    own = _own(part.question, answers)
    return None if own is None else {**values, "said": said, "answer": own}


def _unlinked(known: Mapping[str, Any]) -> dict[str, Any]:
    """The same values without the formulas they come from: a prompt must not lead to its own answer."""
    return {name: float(value) if isinstance(value, Computed) else value for name, value in known.items()}


def _has_own_numbers(part: Part) -> bool:
    return part.is_follow_up or any(earlier.kind == "number" for earlier in part.builds_on)


def scorecard(
    interview: Interview,
    values: Mapping[str, Any],
    answers: Mapping[str, str],
    judged: Mapping[str, Mapping[str, bool]],
) -> dict[str, Any]:
    """Every part graded. A text answer counts once its rubric is judged; until then the score is what is certain."""
    rows = [_row(part, values, answers, judged.get(part.id)) for part in parts_of(interview)]
    points = sum(row["points"] for row in rows)
    reached = sum(row["reached"] for row in rows)
    score = share(reached, points)
    open_parts = [row["id"] for row in rows if row["verdict"] == "to judge"]
    return {
        "rows": rows,
        "points": points,
        "reached": round(reached, 2),
        "score": score,
        "level": None if open_parts else level_of(score),
        "to_judge": open_parts,
    }


def _row(
    part: Part, values: Mapping[str, Any], answers: Mapping[str, str], judged: Mapping[str, bool] | None
) -> dict[str, Any]:
    text = answers.get(part.id, "").strip()
    kind = part.question.kind
    return {
        "id": part.id,
        "title": part.question.title + (", follow-up" if part.is_follow_up else ""),
        "kind": kind,
        "said": text,
        "points": part.points,
        **_graded(part, _known_to(part, values, answers), text, judged),
    }


def _graded(
    part: Part, known: Mapping[str, Any] | None, text: str, judged: Mapping[str, bool] | None
) -> dict[str, Any]:
    """What became of a part whose expressions see `known`."""
    if known is None:
        missing = "The question before it had no number to follow up." if part.is_follow_up else _NOT_REACHED
        return _blank("not asked", missing)
    try:
        if part.question.kind == "number":
            return _number_row(part, known, text)
        if part.question.kind == "choice":
            return _choice_row(part, known, text)
        return _text_row(part, known, text, judged)
    except ExpressionError:
        if _has_own_numbers(part):
            return _blank("not asked", "Your own figure before it leads to no number here.")
        raise


_NOT_REACHED = "It builds on a question that was not answered."


def _number_row(part: Part, known: Mapping[str, Any], text: str) -> dict[str, Any]:
    source: Any = part.source
    key = float(Expressions(known).number(source.key))
    explanation = str(render(source.explanation, Expressions(known)))
    if not text:
        return {**_blank("no answer", ""), "key": scaled(key, source.unit), "explanation": explanation}
    grade = _grade(source, key, text, known)
    verdict = {"correct": "right", "wrong": "wrong", "invalid": "not readable"}[grade.status]
    return {
        "verdict": verdict,
        "reached": part.points * grade.credit,
        "key": scaled(key, source.unit),
        "message": f"{grade.title.capitalize()}. {grade.message}" if grade.title else grade.message,
        "explanation": explanation,
        "cure": grade.cure,
    }


def _choice_row(part: Part, known: Mapping[str, Any], text: str) -> dict[str, Any]:
    right = next(option for option in part.question.options if option.correct)
    chosen = next((option for option in part.question.options if option.id == text), None)
    explanation = str(render(part.question.explanation, Expressions(known)))
    if chosen is None:
        return {**_blank("no answer", ""), "key": _plain(right.text, known), "explanation": explanation}
    return {
        "verdict": "right" if chosen.correct else "wrong",
        "reached": part.points if chosen.correct else 0.0,
        "key": _plain(right.text, known),
        "said_text": _plain(chosen.text, known),
        "message": _plain(chosen.message, known),
        "explanation": explanation,
        "cure": None,
    }


def _plain(text: str, known: Mapping[str, Any]) -> str:
    return str(render_inline(text, Expressions(known)).striptags())


def _text_row(part: Part, known: Mapping[str, Any], text: str, judged: Mapping[str, bool] | None) -> dict[str, Any]:
    question = part.question
    points = [
        {
            "id": each.id,
            "point": _plain(each.point, known),
            "weight": each.weight,
            "met": None if judged is None else bool(judged.get(each.id)),
        }
        for each in question.rubric
    ]
    shared = {
        "rubric": points,
        "exemplar": str(render_inline(question.exemplar or "", Expressions(known))),
        "explanation": str(render(question.explanation, Expressions(known))),
        "key": None,
        "cure": None,
        "message": "",
    }
    if not text:
        return {**_blank("no answer", ""), **shared}
    if judged is None:
        return {"verdict": "to judge", "reached": 0.0, **shared}
    weights = sum(each.weight for each in question.rubric)
    met = sum(each.weight for each in question.rubric if judged.get(each.id))
    return {"verdict": f"{met} of {weights} by your own judgement", "reached": part.points * met / weights, **shared}


def _blank(verdict: str, message: str) -> dict[str, Any]:
    return {"verdict": verdict, "reached": 0.0, "key": None, "message": message, "explanation": "", "cure": None}


def _own(question: Question, answers: Mapping[str, str]) -> float | None:
    if question.kind != "number":
        return None
    try:
        return read_number(Part(question.id, question, False, 0.0), answers.get(question.id, ""))
    except Unreadable:
        return None


def _grade(source: Any, key: float, text: str, values: Mapping[str, Any]) -> Grade:
    slips = [_known(slip, values) for slip in source.slips]
    usable = [slip for slip in slips if not within(slip.value, key, source.tolerance)]
    return grade_number(text, key, SCALES[source.unit][0], source.tolerance, usable)


def _known(slip: Slip, values: Mapping[str, Any]) -> KnownSlip:
    value = float(Expressions(values).number(slip.value))
    message = render_inline(slip.message, Expressions(values)).striptags()
    return KnownSlip(slip.id, value, slip.title, message, slip.cure)
