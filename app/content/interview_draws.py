"""The numbers of an interview, drawn by seed such that no mistake in it leads to what is right. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from app.content import seeded
from app.content.interview_schemas import Interview, Question
from app.content.live import Expressions, at
from app.content.questions import NumberSource
from app.grading.numbers import within


def draw(interview: Interview, seed: int, narrowed: seeded.Choices | None = None) -> dict[str, object]:
    """The parameters of `seed`, some of which may be narrowed to fewer choices. A draw at which a mistake leads to what
    is right gives way to the clearest of the next few. Raises ExpressionError."""
    name, choices = f"{interview.id}:{interview.revision}", narrowed or interview.parameters

    def hidden(values: Mapping[str, object]) -> int:
        return len(list(hidden_slips(interview, values)))

    return seeded.clearest(name, choices, interview.let, None, seed, hidden)


def hidden_slips(interview: Interview, values: Mapping[str, object]) -> Iterator[str]:
    """The mistakes that lead to what is right at a draw, as <question>.<slip>, in all its numbers after right ones."""
    for question, source, known in _numbers(interview, values):
        expressions = Expressions(known)
        key = float(expressions.number(source.key or ""))
        for slip in source.slips:
            with at("questions", question.id, slip.id):
                if within(float(expressions.number(slip.value)), key, source.tolerance):
                    yield f"{question.id}.{slip.id}"


def _numbers(
    interview: Interview, values: Mapping[str, object]
) -> Iterator[tuple[Question, NumberSource, Mapping[str, object]]]:
    """Every number that is asked, with what its expressions see where all before it was right."""
    said: dict[str, float] = {}
    for question in interview.questions:
        if question.kind != "number" or question.key is None:
            continue
        known = {**values, "said": dict(said)}
        yield question, question, known
        with at("questions", question.id, "key"):
            said[question.name] = float(Expressions(known).number(question.key))
        for source in filter(None, (question.follow_up, question.harder)):
            yield question, source, {**known, "answer": said[question.name]}
