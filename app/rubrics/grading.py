"""Rubrics ready to grade with, and grades as JSON."""

from __future__ import annotations

from collections.abc import Mapping

from app.content.catalogue import Catalogue
from app.content.rubric_schemas import RubricFile, make_rubric
from app.core.errors import DomainError, NotFound, Violation
from app.grading.rubrics.grader import Rubric, RubricGrade, grade
from app.grading.rubrics.points import Judgement

LONGEST_ANSWER = 100_000

_MADE: dict[str, tuple[RubricFile, Rubric]] = {}


def find_rubric(content: Catalogue, key: str) -> RubricFile:
    """Raises NotFound."""
    rubric = content.rubric(key)
    if rubric is None:
        raise NotFound(f"There is no rubric {key[:80]!r}. Accepted: {', '.join(content.rubrics)}.")
    return rubric


def grade_text(rubric: RubricFile, text: str, judged: Mapping[str, Judgement] | None = None) -> RubricGrade:
    """Grade `text` with the built-in grader. Raises DomainError when there is nothing to grade, or too much."""
    if not text.strip():
        raise DomainError("There is no answer to grade.", [Violation("text", "", "It is empty.", "an answer in words")])
    if len(text) > LONGEST_ANSWER:
        message = f"{len(text):,} characters are too many."
        violation = Violation("text", "…", message, f"up to {LONGEST_ANSWER:,}")
        raise DomainError("The answer is too long to grade.", [violation])
    return grade(_made(rubric), text, judged)


def _made(file: RubricFile) -> Rubric:
    """Compiled once: a rubric's numbers and wordings take longer to read than an answer."""
    kept = _MADE.get(file.id)
    if kept is None or kept[0] is not file:
        kept = _MADE[file.id] = (file, make_rubric(file))
    return kept[1]


def grade_json(grade: RubricGrade) -> dict[str, object]:
    """A grade as programs get it."""
    return {
        "points": [
            {
                "id": each.id,
                "verdict": each.verdict,
                "credit": each.credit,
                "doubted": each.doubted,
                "evidence": list(each.evidence),
            }
            for each in grade.points
        ],
        "critical": [{"id": identity, "evidence": [text]} for identity, text in grade.critical.items()],
        "level": grade.level,
        "score": grade.score,
        "notes": list(grade.notes),
        "corrections": [{"sentence": each.sentence, "so": each.so} for each in grade.corrections],
        "lifted_by": list(grade.lifted_by),
    }
