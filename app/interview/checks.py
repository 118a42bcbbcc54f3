"""Interviews over their seeds: every prompt renders, every key grades as right, every follow-up is asked."""

from __future__ import annotations

from collections.abc import Iterator

from app.content.catalogue import Catalogue
from app.content.checks import Finding
from app.content.interview_schemas import Interview
from app.content.live import ExpressionError, Expressions
from app.grading.rubrics.grader import grade
from app.interview.parts import Answers, Part, Values, known_to, offered, parts_of, prompt, right_answer, rubric_of
from app.interview.scoring import scorecard
from app.interview.service import draw, values_of

SEEDS = range(50)
HEARD = range(2)  # of them: what is heard in words hardly depends on the numbers, and hearing takes its time


def check_interviews(catalogue: Catalogue) -> Iterator[Finding]:
    """Each finding once, with the first seed that shows it."""
    for interview in catalogue.interviews.values():
        if sum(question.minutes for question in interview.questions) > interview.minutes:
            yield interview.id, ("minutes",), "the questions take longer than the sitting"
        for seed in SEEDS:
            try:
                reason = _finding(interview, seed)
            except ExpressionError as error:
                reason = str(error)
            if reason:
                yield interview.id, ("questions",), f"seed {seed}: {reason}"
                break


def _finding(interview: Interview, seed: int) -> str | None:
    values = values_of(interview, draw(interview, seed))
    answers: dict[str, str] = {}
    for part in parts_of(interview):
        asked = prompt(part, values, answers)
        if asked is None:
            return f"{part.id} is not asked although what it builds on was answered"
        if "data-live" in asked:
            return f"the prompt of {part.id} links to a formula: name the value in let"
        if uncured := [slip.id for slip in part.source.slips if not slip.cure]:
            return f"no card cures slip {', '.join(uncured)} of {part.id}"
        offered(part, values, answers, seed)
        answers[part.id] = "words" if part.question.kind == "text" else right_answer(part, values, answers)
        if part.kind == "text" and seed in HEARD and (misheard := _misheard(part, values, answers)):
            return misheard
    rows = scorecard(interview, values, answers, {}).rows
    wrong = [row.id for row in rows if row.kind != "text" and row.verdict != "right"]
    return f"the key does not grade as right: {', '.join(wrong)}" if wrong else None


def _misheard(part: Part, values: Values, answers: Answers) -> str | None:
    """What is wrong where a full answer is not heard as one, or a weak one as more than it is."""
    known = known_to(part, values, answers)
    assert known is not None, "asked, so it is known"
    rubric = rubric_of(part, known)
    for name, source in (("exemplar", part.question.exemplar or ""), ("weak", part.question.weak or "")):
        expressions = Expressions(known)
        said = " ".join(expressions.text(expressions.fill(source)).split())  # a line of a file is no sentence
        found = grade(rubric, said)
        if found.level != ("strong hire" if name == "exemplar" else "no hire"):
            points = ", ".join(f"{each.id} {each.verdict}" for each in found.points)
            return f"the {name} answer to {part.id} is heard as {found.level} ({found.score:.2f}): {points}"
    return None
