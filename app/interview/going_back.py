"""A number that was put right or changed when it was questioned, and comes up again as it was at first. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from app.content.composed import ChosenQuestion
from app.content.rounds import BorrowedQuestion
from app.grading.rubrics.reading import read as read_words
from app.interview.parts import Answers, Part, Reactions, Values, again_id, built_on, known_to, read
from app.interview.questions import number_of
from app.units import SCALES, scaled

SAME = 0.002  # relative: a number that is said again
OTHER = 0.02  # relative: one that was changed


@dataclass(frozen=True)
class Replaced:
    """A number as it was given at first and as it was said last, in base units of `unit`, and the part that asked."""

    part: str
    title: str
    first: float
    last: float
    unit: str

    @property
    def says(self) -> str:
        """That it is the first number, and which has taken its place."""
        first, last = scaled(self.first, self.unit), scaled(self.last, self.unit)
        return f"{first} was your first number for “{self.title}”, and you have made it {last} since."


def replaced(parts: Collection[Part], answers: Answers, reactions: Reactions) -> Iterator[Replaced]:
    """Every number that was changed when it was questioned."""
    for part in parts:
        reaction = reactions.get(part.id)
        if part.kind != "number" or part.own or reaction is None or reaction.asks != again_id(part.id):
            continue
        unit = part.source.unit or ""
        first, last = read(answers.get(part.id, ""), unit), read(answers.get(reaction.asks, ""), unit)
        if first and last and abs(first - last) > OTHER * abs(first):
            yield Replaced(part.id, part.title, first, last, unit)


def replaced_before(part: Part, parts: Collection[Part], answers: Answers, reactions: Reactions) -> Iterator[Replaced]:
    """Those changed numbers that an answer in words may go by: those of its own interview. In another one, and of a
    plan, the same figure is of something else."""
    if isinstance(part.question, BorrowedQuestion):
        return iter(())  # it defends a plan, which has numbers of its own
    of = {other.id: _source(other) for other in parts}
    return (each for each in replaced(parts, answers, reactions) if of[each.part] == _source(part))


def _source(part: Part) -> str:
    """The problem or interview that its numbers are of."""
    if isinstance(part.question, BorrowedQuestion):
        return part.question.problem.id
    return part.question.source.id if isinstance(part.question, ChosenQuestion) else ""


def goes_by_first(
    part: Part, parts: Collection[Part], values: Values, answers: Answers, reactions: Reactions
) -> Replaced | None:
    """The earlier number that the wrong answer to `part` follows from as it was at first; None where it does not."""
    own = built_on(answers, reactions)
    earlier = {each.id for each in part.builds_on} | ({part.question.id} if part.builds_on_own else set())
    for each in replaced(parts, answers, reactions):
        if each.part not in earlier:
            continue
        known = known_to(part, values, {**own, each.part: answers[each.part]})
        if known is not None and number_of(part, known).grade(answers[part.id]).status == "correct":
            return each
    return None


def said_again(text: str, changed: Collection[Replaced]) -> Replaced | None:
    """The changed number that a text says as it was at first, with its unit, and not as it was said last."""
    numbers = [number for sentence in read_words(text).sentences for number in sentence.numbers if number.has_unit]

    def says(number_changed: Replaced, value: float) -> bool:
        dimension, scale = SCALES[number_changed.unit]
        return any(number.matches(value, dimension, scale, SAME) for number in numbers)

    return next((each for each in changed if each.unit and says(each, each.first) and not says(each, each.last)), None)
