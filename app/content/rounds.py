"""Rounds: parts of strategy problems against the clock, `cards/rounds/<name>.yaml`.

A round is an interview whose questions are parts of problems. A file names the parts and gives each a title and its
minutes; prompts, keys, slips and options are the problem's own. A plan may be asked to be defended in words (`why`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated

from pydantic import Field, PrivateAttr, model_validator

from app.content.interview_schemas import FollowUp, Interview, Question
from app.content.problem_schemas import AnyPart, ChoicePart, ConfigurationPart, NumberPart, OrderPart, Problem
from app.content.schemas import InterviewId, Item, ProblemId, Slug, Strict, Text

ASKED = (NumberPart, ChoicePart, OrderPart, ConfigurationPart)  # the kinds of parts that a round can ask


class NoSuchPart(ValueError):
    """A round asks for what is not among the problems; `location` is the field that does."""

    def __init__(self, location: tuple[str | int, ...], reason: str) -> None:
        super().__init__(reason)
        self.location = location


class AskedPart(Strict):
    """A part of a problem, as a round asks it."""

    part: Slug
    title: Text
    minutes: Annotated[int, Field(ge=1, le=30)]
    concepts: tuple[Slug, ...] = ()  # that it is about; all of its round's where it names none
    harder: FollowUp | None = None  # asked of who is right at once; its expressions see what the part's do
    why: Question | None = None  # asked behind it, in words, of who chose a plan

    @model_validator(mode="after")
    def _is_asked_in_words(self) -> AskedPart:
        if self.why is not None and self.why.kind != "text":
            raise ValueError("why is answered in words: its kind is text")
        return self


class AskedProblem(Strict):
    """A problem with the parts of it that a round asks, in order."""

    problem: ProblemId
    parts: Annotated[tuple[AskedPart, ...], Field(min_length=1)]


class RoundFile(Item):
    """The fields of a round's file."""

    id: InterviewId
    problems: Annotated[tuple[AskedProblem, ...], Field(min_length=1)]


class BorrowedQuestion(Question):
    """A part of a problem as a question. What later parts go by is its candidate's own number where there is one."""

    _problem: Problem = PrivateAttr()
    _part: AnyPart = PrivateAttr()

    @property
    def problem(self) -> Problem:
        """Whose statement and numbers it goes by."""
        return self._problem

    @property
    def part(self) -> AnyPart:
        """What it asks."""
        return self._part

    @property
    def carries(self) -> Mapping[str, NumberPart]:
        """The number parts it goes on with, by the id of the question that asks them."""
        names = self._part.carries if isinstance(self._part, NumberPart) else ()
        earlier = [each for each in self._problem.parts if isinstance(each, NumberPart) and each.id in names]
        return {question_id(self._problem, each): each for each in earlier}

    @model_validator(mode="after")
    def _has_what_its_kind_needs(self) -> BorrowedQuestion:
        return self  # the problem was checked

    @model_validator(mode="after")
    def _is_arranged(self) -> BorrowedQuestion:
        return self  # as above

    @model_validator(mode="after")
    def _is_questioned(self) -> BorrowedQuestion:
        return self  # `make_round` saw to it


class Round(Interview):
    """An interview made of parts of problems; `drawn` of its sittings holds the parameters of each by its id."""

    questions: Annotated[tuple[BorrowedQuestion, ...], Field(min_length=1)]

    @property
    def is_round(self) -> bool:
        return True

    @property
    def problems(self) -> Mapping[str, Problem]:
        """The problems it asks, in order."""
        return {question.problem.id: question.problem for question in self.questions}


def question_id(problem: Problem, part: AnyPart) -> str:
    """What a part of a problem is called among the questions of a round."""
    return f"{problem.id.lower()}-{part.id}"


def make_round(file: RoundFile, problems: Mapping[str, Problem]) -> Round:
    """The round of a file. Raises NoSuchPart."""
    questions: list[BorrowedQuestion] = []
    for index, asked in enumerate(file.problems):
        problem = problems.get(asked.problem)
        if problem is None:
            raise NoSuchPart(("problems", index, "problem"), f"there is no problem {asked.problem}")
        parts = {part.id: part for part in problem.parts if isinstance(part, ASKED)}
        for number, each in enumerate(asked.parts):
            if each.part not in parts:
                accepted = ", ".join(parts)
                where = ("problems", index, "parts", number, "part")
                raise NoSuchPart(where, f"{each.part} is no part of {problem.id} that a round can ask: {accepted}")
            if unasked := list(_unasked(parts[each.part])):
                where = ("problems", index, "parts", number, "part")
                raise NoSuchPart(where, f"{each.part} of {problem.id} needs ask at {', '.join(unasked)}")
            if untold := list(_untold(parts[each.part])):
                where = ("problems", index, "parts", number, "part")
                raise NoSuchPart(where, f"{each.part} of {problem.id} needs, for the debrief, {', '.join(untold)}")
            is_last = each is asked.parts[-1]
            questions.append(_question(problem, parts[each.part], each, problem.solution if is_last else ""))
            if each.why is not None:
                if not isinstance(parts[each.part], ConfigurationPart):
                    where = ("problems", index, "parts", number, "why")
                    raise NoSuchPart(where, f"{each.part} of {problem.id} is no plan that could be defended")
                questions.append(_defence(problem, parts[each.part], each.why))
    head = file.model_dump(exclude={"problems"})
    return Round(**head, parameters={}, questions=tuple(questions))


def _defence(problem: Problem, part: AnyPart, why: Question) -> BorrowedQuestion:
    """What is asked in words about the plan that was chosen in `part`."""
    fields = {name: getattr(why, name) for name in Question.model_fields}
    question = BorrowedQuestion(**{**fields, "id": f"{question_id(problem, part)}-{why.id}"})
    question._problem, question._part = problem, part
    return question


def _unasked(part: AnyPart) -> Iterator[str]:
    """The mistakes in a part that nothing is asked about."""
    yield from (slip.id for slip in part.slips if not slip.ask)
    if isinstance(part, ChoicePart):
        several = part.kind == "set"
        yield from (each.id for each in part.options if each.may_be_misjudged(several) and not each.ask)


def _untold(part: AnyPart) -> Iterator[str]:
    """What a debrief has no words for: what was done by who got a part wrong, and what they are to learn."""
    yield from (f"did and learn at {slip.id}" for slip in part.slips if not (slip.did and slip.learn))
    if part.kind == "choice":
        yield from (f"did at {each.id}" for each in part.options if each.may_be_misjudged(False) and not each.did)
    if part.kind != "number" and not part.learn:
        yield "learn"


def _question(problem: Problem, part: AnyPart, asked: AskedPart, explanation: str) -> BorrowedQuestion:
    number = {}
    if isinstance(part, NumberPart):
        number = {"key": part.key, "unit": part.unit, "tolerance": part.tolerance, "doubt": part.doubt}
    question = BorrowedQuestion(
        id=question_id(problem, part),
        kind=part.kind,
        title=asked.title,
        prompt=part.prompt,
        minutes=asked.minutes,
        points=part.points,
        concepts=asked.concepts,
        explanation=explanation,
        learn=part.learn,
        slips=part.slips,
        harder=asked.harder,
        **number,
    )
    question._problem, question._part = problem, part
    return question
