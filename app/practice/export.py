"""Variants and grades for the command line, without a database."""

from __future__ import annotations

from collections.abc import Mapping

from app.content.catalogue import Catalogue
from app.content.live import Expressions
from app.content.markdown import render_plain
from app.grading.grade import Grade
from app.grading.questions import ChoiceQuestion, ConfigurationQuestion, NumberQuestion, OrderQuestion
from app.practice import service
from app.practice.desk import Desk, check_seed, grade_alone
from app.practice.parts import Part
from app.practice.variants import make_variant


def variant_json(content: Catalogue, identity: str, seed: int) -> dict[str, object]:
    """A variant with its key. Raises NotFound."""
    check_seed(seed)
    problem = service.find_problem(content, identity)
    made = make_variant(problem, seed)
    return {
        "id": made.problem.id,
        "seed": seed,
        "statement": render_plain(problem.statement, Expressions(made.values)),
        "given": {label: text.striptags() for label, text in made.given},
        "parts": [{**part_json(part), "key": _key(part), "slips": _slips(part)} for part in made.parts],
        "hints": [hint.striptags() for hint in made.hints],
        "solution": render_plain(problem.solution, Expressions(made.values)),
    }


def part_json(part: Part) -> dict[str, object]:
    """What is asked, without what is right."""
    shown: dict[str, object] = {
        "id": part.id,
        "kind": part.kind,
        "prompt": part.prompt.striptags(),
        "points": part.points,
        "choices": None,
        "unit": None,
        "tolerance": None,
    }
    question = part.question
    if isinstance(question, NumberQuestion):
        shown |= {"unit": question.unit, "tolerance": question.tolerance}
    elif isinstance(question, ChoiceQuestion):
        shown["choices"] = [{"id": each.id, "text": each.text.striptags()} for each in question.options]
    elif isinstance(question, OrderQuestion):
        shown["choices"] = [{"id": each.id, "text": each.text.striptags()} for each in question.items]
    elif isinstance(question, ConfigurationQuestion):
        shown["fields"] = {name: list(values) for name, values in question.fields.items()}
    else:
        shown["rubric"] = part.rubric
    return shown


def _key(part: Part) -> dict[str, object] | None:
    if part.question is None:
        return None
    unit = part.question.dimension if isinstance(part.question, NumberQuestion) else None
    return {"value": part.key, "unit": unit, "text": part.answer_text}


def _slips(part: Part) -> list[dict[str, object]]:
    if not isinstance(part.question, NumberQuestion):
        return []
    return [{"id": slip.id, "value": slip.value, "title": slip.title} for slip in part.question.slips]


def grade_json(content: Catalogue, identity: str, seed: int, answers: Mapping[str, str]) -> dict[str, object]:
    """Grades of `answers` by part, as over HTTP. Raises DomainError for parts that do not exist."""
    return graded_json(grade_alone(service.find_problem(content, identity), seed, answers))


def graded_json(desk: Desk) -> dict[str, object]:
    """What became of each part. A part without an answer stays open: like an invalid one, it counts nothing."""
    open_part = Grade("invalid", 0.0, "Not answered yet.")
    graded = [(state.part.id, state.grade or open_part) for state in desk.parts if state.part.points]
    return {
        "score": desk.score,
        "parts": [
            {
                "id": part,
                "status": grade.status,
                "credit": grade.credit,
                "message": grade.message,
                "misconception": grade.misconception,
            }
            for part, grade in graded
        ],
    }
