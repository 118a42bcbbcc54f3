"""What opened hints leave of an answer's credit, in practice and in interviews alike."""

from __future__ import annotations

from dataclasses import replace

from app.grading.grade import Grade

HINT_FACTOR = 0.75  # each opened hint leaves three quarters of the credit


def share_left(hints_opened: int) -> float:
    """The share of the credit that can still be reached."""
    return HINT_FACTOR**hints_opened


def after_hints(grade: Grade, hints_opened: int) -> Grade:
    return replace(grade, credit=round(grade.credit * share_left(hints_opened), 4))
