"""The rows of answers that are not in words: numbers, choices, orders, layouts, plans, programs. Pure."""

from __future__ import annotations

from dataclasses import replace

from markupsafe import Markup

from app.content.coding import TaskQuestion
from app.content.live import Expressions
from app.content.markdown import render
from app.grading.levels import NAMES
from app.grading.questions import ChoiceQuestion, LayoutQuestion, NumberQuestion, OrderQuestion
from app.interview.givens import replies_to
from app.interview.hints import said_hints
from app.interview.parts import PUSHED_SHARE, Part, Values, by_theory
from app.interview.questions import PlainQuestion, choice_of, question_of
from app.interview.rows import BETTER, CORRECTED, NO_ANSWER, NOT_ASKED, VERDICTS, Pushed, Row
from app.interview.to_grade import ToGrade
from app.reveal.number import said_number, slip_of
from app.words import capital

_NOT_IN_IT = "It was not asked in this sitting."


def graded_row(row: Row, part: Part, known: Values, sitting: ToGrade) -> Row:
    """The row of a number, of what was chosen, arranged or laid out, or of a plan."""
    question = question_of(part, known)
    row = replace(
        row, key=question.key_text, hints=said_hints(part, sitting.answers), criterion=part.question.criterion
    )
    if not row.said:
        return replace(row, verdict=NO_ANSWER)
    grade = question.grade(row.said)
    number = None
    if isinstance(question, NumberQuestion):
        number = said_number(question.by_own, row.said, grade)
        row = _after_own(row, part, known, question)
    row = replace(
        row,
        slip=slip_of(number, grade),
        number=number,
        verdict=VERDICTS[grade.status],
        reached=row.worth * grade.credit,
        message=grade.message,
        ticked=_ticked(question, row.said) if part.kind == "set" and isinstance(question, ChoiceQuestion) else None,
        cure=grade.cure,
        did=grade.did,
        learn=grade.learn or _learn_of_order(part, question, row.said) or part.question.learn or "",
        said_text=question.said(row.said),
        placed=_placed(question, row.said) if isinstance(question, OrderQuestion) else (),
    )
    if isinstance(question, LayoutQuestion):
        row = _laid_out(row, part, known, question)
    for again in sitting.pushed(part):
        row = _questioned(row, again, known, question, sitting)
    return row


def _learn_of_order(part: Part, question: PlainQuestion, said: str) -> str:
    """What content has for whoever put an item too early; empty where it has nothing, or nothing is."""
    early = question.too_early(said) if isinstance(question, OrderQuestion) else None
    return next((each.learn or "" for each in part.question.items if early and each.id == early.id), "")


def _after_own(row: Row, part: Part, known: Values, question: NumberQuestion) -> Row:
    """The row of a number that goes by own wrong ones, with what follows from these; explained by what it comes to."""
    own = question.by_own
    if own.grade(question.key_text).status == "correct":
        return row
    row = replace(row, own_key=own.key_text, own_from=" and ".join(question.carried.parts if question.carried else ()))
    if part.role == "asked" and replace(question, carried=None).grade(row.said).status == "correct":
        row = replace(row, explanation=str(render(part.source.explanation, Expressions(by_theory(part, known)))))
        row = replace(row, is_true_after=own.grade(row.said).status != "correct")
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


def givens_row(row: Row, part: Part, known: Values, sitting: ToGrade) -> Row:
    """The row of what was asked for before computing: what is needed and was not earns nothing, what does not matter
    takes back as much."""
    if not row.said and any(part.question in each.builds_on and sitting.said(each) for each in sitting.parts):
        return replace(row, points=0.0, verdict=NOT_ASKED, message=_NOT_IN_IT)  # begun before the question was there
    row = graded_row(row, part, known, sitting)
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


def _questioned(row: Row, again: Part, known: Values, question: PlainQuestion, sitting: ToGrade) -> Row:
    """The row of a wrong answer not in words with what was said when it was questioned: put right, it earns half of
    what it lost; made better, half of what that gained."""
    said = sitting.said(again)
    grade = question.grade(said)
    if said and row.kind in ("choice", "set"):
        said = choice_of(again, known).said(said)
    gained = PUSHED_SHARE * max(0.0, row.worth * grade.credit - row.reached) if said else 0.0
    became = BETTER if gained and grade.status == "wrong" else VERDICTS[grade.status]
    pushed = Pushed(again.id, sitting.asked(again), said, became if said else NO_ANSWER)
    if isinstance(question, OrderQuestion):
        placed = tuple(each.text.striptags() for each in question.placed(said) or ())
        pushed = replace(pushed, said=question.said(said), placed=placed)
    elif row.kind in ("layout", "configuration") and said:
        pushed = replace(pushed, said=question.said(said), message=grade.message)
    row = replace(row, pushed=(*row.pushed, pushed))
    if row.verdict != VERDICTS["wrong"]:
        return row
    verdict = CORRECTED if grade.status == "correct" else row.verdict
    return replace(row, verdict=verdict, reached=row.reached + gained, gained=row.gained + gained)


def program_row(row: Row, part: Part, known: Values, sitting: ToGrade) -> Row:
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
