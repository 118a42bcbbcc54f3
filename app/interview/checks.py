"""Interviews over their seeds: every prompt renders, every key grades as right, every follow-up is asked."""

from __future__ import annotations

from collections.abc import Iterator

from app.content.catalogue import Catalogue
from app.content.checks import Finding
from app.content.live import ExpressionError
from app.content.schemas import Interview
from app.interview.parts import offered, parts_of, prompt, right_answer
from app.interview.scoring import scorecard
from app.interview.service import draw, values_of

SEEDS = range(50)


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
    rows = scorecard(interview, values, answers, {}).rows
    wrong = [row.id for row in rows if row.kind != "text" and row.verdict != "right"]
    return f"the key does not grade as right: {', '.join(wrong)}" if wrong else None
