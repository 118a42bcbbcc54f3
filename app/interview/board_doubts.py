"""Where a board says something else than the words beside it: one remark, and the words count. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from app.grading.rubrics.grader import Rubric, grade
from app.interview.boards import board_id
from app.interview.layouts import Layout, read_layout
from app.interview.parts import Answers

_AXES = ("tensor", "pipeline", "data", "context")


def board_doubt(part: str, answers: Answers, rubric: Rubric) -> str:
    """What is said of a board that contradicts the words of `part`; empty where it does not, or there are not both."""
    drawn = answers.get(board_id(part), "")
    words = answers.get(part, "").removesuffix(drawn).strip()
    if not drawn or not words:
        return ""
    return next(_doubts(words, drawn, rubric), "")


def _doubts(words: str, drawn: str, rubric: Rubric) -> Iterator[str]:
    said, placed = read_layout(words), read_layout(drawn)
    if said and placed and _degrees(said) != _degrees(placed):
        yield f"Your drawing has {_degrees(placed)}, and you say {_degrees(said)}. I go by what you say."
    in_words = {each.id for each in grade(rubric, words).points if each.credit}
    for each in grade(rubric, drawn).points:
        if each.verdict == "contradicted" and each.id in in_words and each.evidence:
            yield f"Your drawing says “{each.evidence[0].rstrip('.')}”, and your words say the opposite. I go by those."


def _degrees(layout: Layout) -> str:
    degrees = {axis: getattr(layout, axis) for axis in _AXES}
    return ", ".join(f"{axis} {degree}" for axis, degree in degrees.items() if degree > 1) or "nothing split"
