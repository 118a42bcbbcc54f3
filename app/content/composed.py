"""Interviews put together from questions of others: what a generated sitting asks.

A question is called by where it stands, `M5.bubble` or, of a problem that a round asks, `SP2.c`. Borrowed, its id is
`m5-bubble`; its expressions still see the numbers of its own interview, and what was said to that interview's other
questions by their own names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated

from pydantic import Field, PrivateAttr, SkipValidation, StringConstraints

from app.content.catalogue import Catalogue
from app.content.coding import POINTS_A_MINUTE, CodingRound, as_called_now, task
from app.content.interview_schemas import Interview, Question
from app.content.problem_schemas import Problem
from app.content.rounds import BorrowedQuestion

FOLLOW_UP = "follow"  # what a follow-up is called behind its question


class ChosenQuestion(Question):
    """A question of an interview, borrowed with what it builds on."""

    _source: Interview = PrivateAttr()
    _name: str = PrivateAttr()

    @property
    def source(self) -> Interview:
        """Whose numbers it goes by."""
        return self._source

    @property
    def name(self) -> str:
        return self._name


class Composed(Interview):
    """An interview made of borrowed questions; its sittings' `drawn` holds the parameters of each source by its id."""

    id: Annotated[str, StringConstraints(pattern=r"^[A-Z][0-9a-z]+$")]
    # each was checked where it stands
    questions: Annotated[tuple[SkipValidation[Question], ...], Field(min_length=1)]

    @property
    def is_round(self) -> bool:
        return self.id.startswith("T")

    @property
    def sort(self) -> str:
        return "Round" if self.is_round else "Generated"

    @property
    def label(self) -> str:
        """A generated one goes by the number that it was drawn by, with which its address ends."""
        return self.id if self.is_round else f"No. {self.slug.rpartition('-')[2]}"

    @property
    def sources(self) -> Mapping[str, Interview | Problem]:
        """What its questions are borrowed from, in order."""
        found: dict[str, Interview | Problem] = {}
        for question in self.questions:
            if isinstance(question, BorrowedQuestion):
                found[question.problem.id] = question.problem
            elif isinstance(question, ChosenQuestion):
                found[question.source.id] = question.source
        return found


def borrowed_id(reference: str) -> str:
    """What a question is called where it is borrowed."""
    source, _, name = reference.partition(".")
    return as_called_now(f"{source.lower()}-{name.replace('.', '-')}")


def borrowable(content: Catalogue) -> dict[str, Question]:
    """Every question that can be borrowed, by what it is called; of the parts of problems those that a round asks."""
    found: dict[str, Question] = {}
    for interview in _lenders(content):
        for question in interview.questions:
            if isinstance(question, BorrowedQuestion):
                found.setdefault(f"{question.problem.id}.{question.part.id}", question)
            else:
                found[f"{interview.id}.{question.id}"] = _chosen(question, interview)
    return found


def _lenders(content: Catalogue) -> list[Interview]:
    """The interviews whose questions can be borrowed: a coding round draws its own."""
    return [each for each in content.interviews.values() if not isinstance(each, CodingRound)]


def concepts_by_question(content: Catalogue) -> dict[str, tuple[str, ...]]:
    """What every question that can be borrowed is about, by where it stands: in its interview, and a part of a problem
    by that as well. A follow-up stands behind its question, as `M9.q1.follow`."""
    found: dict[str, tuple[str, ...]] = {}
    for interview in _lenders(content):
        for question in interview.questions:
            about = found[f"{interview.id}.{question.id}"] = concepts_of(question) or interview.concepts
            if question.follow_up:
                found[f"{interview.id}.{question.id}.{FOLLOW_UP}"] = question.follow_up.concepts or about
            if isinstance(question, BorrowedQuestion):
                found.setdefault(f"{question.problem.id}.{question.part.id}", concepts_of(question))
    return found


def concepts_of(question: Question) -> tuple[str, ...]:
    """What a borrowed question is about."""
    if isinstance(question, BorrowedQuestion):
        return question.concepts or question.problem.concepts
    return question.concepts


def needs_of(reference: str, question: Question) -> tuple[str, ...]:
    """The questions that come with `question`, by what they are called: those it builds on or follows, or, in a
    problem, those whose numbers it goes on with."""
    source = reference.partition(".")[0]
    if isinstance(question, BorrowedQuestion):
        return tuple(f"{source}.{part.id}" for part in question.carries.values())
    prefix = f"{source.lower()}-"
    return tuple(f"{source}.{each.removeprefix(prefix)}" for each in (*question.builds_on, *question.follows))


def compose(content: Catalogue, references: Iterable[str], head: Mapping[str, object]) -> Composed:
    """The interview of these questions; a minute of one is worth what a minute of another is. Those that content no
    longer has, or whose ground it no longer has, are left out. Raises ValueError where none is left."""
    known, asked = borrowable(content), list[Question]()
    for reference in references:
        question, ids = known.get(reference) or task(reference, content.labs), {each.id for each in asked}
        if question is not None and ids.issuperset((*question.builds_on, *question.follows)):
            asked.append(question.model_copy(update={"points": question.minutes * POINTS_A_MINUTE}))
    after = (each for question in asked if question.follow_up for each in question.follow_up.concepts)
    concepts = tuple(dict.fromkeys((*(each for question in asked for each in concepts_of(question)), *after)))
    composed = Composed(**{**head, "concepts": concepts, "parameters": {}, "questions": tuple(asked)})
    if content.interviews:
        shared = next(iter(content.interviews.values()))  # the same for all
        composed.read_with(shared.wordings, shared.challenges, misbeliefs=shared.misbeliefs)
    return composed


def _chosen(question: Question, source: Interview) -> ChosenQuestion:
    """`question` under the id it has where it is borrowed. It was checked where it stands."""
    fields = {name: getattr(question, name) for name in Question.model_fields}
    fields["id"] = borrowed_id(f"{source.id}.{question.id}")
    for name in ("builds_on", "follows"):
        fields[name] = tuple(borrowed_id(f"{source.id}.{each}") for each in fields[name])
    fields["concepts"] = question.concepts or source.concepts
    chosen = ChosenQuestion.model_construct(**fields)
    chosen._source, chosen._name = source, question.id
    return chosen
