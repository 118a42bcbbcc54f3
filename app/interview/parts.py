"""What a sitting asks: its questions and follow-ups, as they follow from the candidate's own numbers. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from markupsafe import Markup

from app.content.interview_schemas import FollowUp, Interview, Question
from app.content.live import Computed, ExpressionError, Expressions
from app.content.markdown import render
from app.content.questions import follow_own, make_number, make_options
from app.content.rubric_schemas import make_points
from app.grading.quantities import Unreadable
from app.grading.questions import ChoiceQuestion, NumberQuestion, carried_values, read_number, shuffled
from app.grading.rubrics.grader import Rubric
from app.grading.rubrics.reading import NO_WORDINGS
from app.grading.rubrics.wordings import Wordings

FOLLOW_UP_SHARE = 0.4  # of a number question's points

Values = Mapping[str, Any]
Answers = Mapping[str, str]


@dataclass(frozen=True)
class Part:
    """One thing to answer in a sitting: a question, or the follow-up to it."""

    id: str
    question: Question
    is_follow_up: bool
    points: float
    builds_on: tuple[Question, ...] = ()
    let: Mapping[str, str] = field(default_factory=dict)  # what the interview computes, to explain a wrong number
    wordings: Wordings = NO_WORDINGS  # through which an answer in words is read

    @property
    def source(self) -> Question | FollowUp:
        """Where its prompt, key and slips stand."""
        return self.question.follow_up if self.is_follow_up and self.question.follow_up else self.question

    @property
    def kind(self) -> str:
        return self.question.kind

    @property
    def title(self) -> str:
        return self.question.title + (", follow-up" if self.is_follow_up else "")

    @property
    def goes_by_own_numbers(self) -> bool:
        """Whether the candidate's own numbers decide what is right."""
        return self.is_follow_up or any(earlier.kind == "number" for earlier in self.builds_on)


def parts_of(interview: Interview) -> list[Part]:
    """Every part in order; follow-ups come right behind their question."""
    found: list[Part] = []
    by_id = {question.id: question for question in interview.questions}
    for question in interview.questions:
        earlier = tuple(by_id[each] for each in question.builds_on)
        following = question.points * FOLLOW_UP_SHARE if question.follow_up else 0.0
        whole = Part(question.id, question, False, float(question.points), earlier, interview.let, interview.wordings)
        found.append(replace(whole, points=question.points - following))
        if question.follow_up:
            found.append(replace(whole, id=f"{question.id}.follow", is_follow_up=True, points=following))
    return found


def known_to(part: Part, values: Values, answers: Answers) -> dict[str, object] | None:
    """What a part's expressions see: the values, and the candidate's own numbers; None where one is missing."""
    if any(not answers.get(each.id, "").strip() for each in part.builds_on):
        return None
    numbers = [each for each in (*part.builds_on, part.question) if each.kind == "number"]
    own = {each.id: value for each in numbers if (value := _own(each, answers)) is not None}
    said = carried_values((each.id for each in part.builds_on if each.kind == "number"), own)
    if said is None or (part.is_follow_up and part.question.id not in own):
        return None
    return {**values, "said": said, **({"answer": own[part.question.id]} if part.is_follow_up else {})}


def prompt(part: Part, values: Values, answers: Answers) -> Markup | None:
    """What is asked; None while what it builds on has no answer that leads anywhere."""
    known = known_to(part, values, answers)
    if known is None or not leads_somewhere(part, known):
        return None
    try:
        return render(part.source.prompt, Expressions(_unlinked(known)))
    except ExpressionError:
        if part.goes_by_own_numbers:
            return None  # their figure has no consequence, as nothing divides by 0
        raise


def leads_somewhere(part: Part, known: Values) -> bool:
    """Whether there is something to ask: a number that follows from own ones must be one."""
    return not (part.kind == "number" and part.goes_by_own_numbers) or follow_own(part.source, known) is not None


def number_of(part: Part, known: Values) -> NumberQuestion:
    """The number a part asks for. Raises ExpressionError."""
    return make_number(part.source, known, part.let)


def rubric_of(part: Part, known: Values) -> Rubric:
    """What an answer in words is graded against. Raises ExpressionError."""
    return Rubric(make_points("rubric", part.question.rubric, known, part.let), (), wordings=part.wordings)


def choice_of(part: Part, known: Values, seed: int = 0) -> ChoiceQuestion:
    """The options a part offers, in the order of `seed`, without links: a formula would give it away."""
    options = tuple(
        replace(option, text=Markup("{}").format(option.text.striptags()))
        for option in make_options(part.question.options, known)
    )
    return ChoiceQuestion(tuple(shuffled(f"{part.id}:{seed}", options)) if seed else options)


def offered(part: Part, values: Values, answers: Answers, seed: int) -> ChoiceQuestion:
    """The options a part offers in the sitting `seed`."""
    return choice_of(part, known_to(part, values, answers) or values, seed)


def right_answer(part: Part, values: Values, answers: Answers) -> str:
    """What would be answered to a number or a choice, after `answers` to the parts before. Raises ExpressionError."""
    known = known_to(part, values, answers) or values
    question = choice_of(part, known) if part.kind == "choice" else number_of(part, known)
    return question.answer_text


def _own(question: Question, answers: Answers) -> float | None:
    """The candidate's own number, in base units."""
    assert question.unit is not None, "asked of numbers alone"
    try:
        return read_number(answers.get(question.id, ""), question.unit)
    except Unreadable:
        return None


def _unlinked(known: Values) -> dict[str, object]:
    """The same values without the formulas they come from: a prompt must not lead to its own answer."""
    return {name: float(value) if isinstance(value, Computed) else value for name, value in known.items()}
