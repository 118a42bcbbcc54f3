"""How long questions took: from the answer before, or the start, to each one's own last answer. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from app.content.interview_schemas import Interview
from app.interview.models import SittingAnswer
from app.interview.scorecards import Scorecard


def minutes_by_question(started_at: datetime, saved: Mapping[str, SittingAnswer]) -> dict[str, float]:
    """Minutes of each question that was answered."""
    spent: dict[str, float] = {}
    before = started_at
    for answer in sorted(saved.values(), key=lambda each: each.saved_at):
        question = answer.part_id.partition(".")[0]
        took = max(0.0, (answer.saved_at - before).total_seconds() / 60)  # a clock may be set back
        spent[question] = spent.get(question, 0.0) + took
        before = answer.saved_at
    return spent


def paced(card: Scorecard, interview: Interview, started_at: datetime, saved: Mapping[str, SittingAnswer]) -> Scorecard:
    """The card with the rows of questions that took longer than their time."""
    spent = minutes_by_question(started_at, saved)
    overlong = {each.id for each in interview.questions if spent.get(each.id, 0.0) > each.minutes}
    return Scorecard(tuple(replace(row, overlong=row.id.partition(".")[0] in overlong) for row in card.rows))
