"""The questions that parts of a sitting ask, made at its numbers: what grades answers, what they are chosen from.

Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from markupsafe import Markup

from app.content.interview_schemas import Option as ContentOption
from app.content.interview_schemas import Question
from app.content.live import Expressions, at, is_plain
from app.content.markdown import render, render_inline
from app.content.problem_schemas import ChoicePart, ConfigurationPart, NumberPart, OrderPart, PartOption
from app.content.questions import (
    OptionSource,
    OrderSource,
    carried_by,
    follow_own,
    make_configuration,
    make_layout,
    make_number,
    make_options,
    make_order,
)
from app.content.rounds import BorrowedQuestion
from app.content.rubric_schemas import make_points
from app.grading.questions import (
    Carried,
    ChoiceQuestion,
    ConfigurationQuestion,
    LayoutQuestion,
    NumberQuestion,
    OrderQuestion,
    shuffled,
)
from app.grading.rubrics.grader import Rubric
from app.grading.rubrics.likeness import Claim, Claims, make_claims
from app.grading.rubrics.nearness import nearnesses
from app.grading.rubrics.reading import read
from app.grading.rubrics.wordings import Wordings
from app.interview.parts import Answers, Part, Values, by_theory, known_to, scope_of, unlinked
from app.units import scaled

PlainQuestion = NumberQuestion | ChoiceQuestion | OrderQuestion | ConfigurationQuestion | LayoutQuestion


@dataclass(frozen=True)
class Scene:
    """The statement of a problem, and what is given with it by label, as HTML without links."""

    problem: str
    statement: Markup
    given: tuple[tuple[str, Markup], ...]


def leads_somewhere(part: Part, known: Values) -> bool:
    """Whether there is something to ask: a number that follows from own ones must be one."""
    return not (part.kind == "number" and part.goes_by_own_numbers) or follow_own(part.source, known) is not None


def number_of(part: Part, known: Values) -> NumberQuestion:
    """The number a part asks for: right is what theory says, and what follows from the candidate's own numbers.

    Raises ExpressionError.
    """
    source = part.question.part if isinstance(part.question, BorrowedQuestion) else None
    if source is not None and part.role == "harder":
        return make_number(part.source, known, part.let)
    if isinstance(source, NumberPart) and isinstance(part.question, BorrowedQuestion):
        carried = carried_by(source, known, known["own"])
        carried = replace(carried, parts=_own_of_problem(part.question, known)) if carried else None
        return replace(make_number(source, known, part.let), carried=carried)
    mine = make_number(part.source, known, part.let)
    if not part.goes_by_own_numbers:
        return mine
    right = make_number(part.source, by_theory(part, known), part.let)
    if mine.key == right.key:
        return right
    return replace(right, carried=Carried(_own_numbers(part, known), mine.key, mine.slips, mine.structure))


def _own_of_problem(question: BorrowedQuestion, known: Values) -> tuple[str, ...]:
    """The candidate's own wrong numbers of the earlier parts that a part of a problem goes on with."""
    own, right = known["own"], known["answer"]
    wrong = (each for each in question.carries.values() if own.get(each.id, right[each.id]) != right[each.id])
    return tuple(scaled(own[each.id], each.unit) for each in wrong)


def _own_numbers(part: Part, known: Values) -> tuple[str, ...]:
    """The candidate's own numbers that a part goes by, as a person reads them."""
    own = [(each, known["said"][each.name]) for each in part.builds_on if each.kind == "number"]
    own += [(part.question, known["answer"])] if part.builds_on_own else []
    return tuple(scaled(value, each.unit or "") for each, value in own)


def rubric_of(part: Part, known: Values) -> Rubric:
    """What an answer in words is graded against. Raises ExpressionError."""
    points = make_points("rubric", part.question.rubric, known, part.let)
    claims, expressions = said_of(part, known), Expressions(known)
    full = " ".join(expressions.text(expressions.fill(part.question.exemplar or "")).split())
    return Rubric(
        points,
        (),
        wordings=part.wordings,
        claims=_compared_with(claims, part.wordings),
        near_claims=_told_by(claims, full, part.wordings),
    )


def claims_of(part: Part, known: Values) -> Claims:
    """What an answer in words is compared with, at the sitting's numbers. Raises ExpressionError."""
    return _compared_with(said_of(part, known), part.wordings)


def said_of(part: Part, known: Values) -> tuple[Claim, ...]:
    """The known claims about a part's points at the sitting's numbers. Raises ExpressionError with the field."""
    expressions, found = Expressions(known), []
    for each in part.claims:
        with at(part.question.name, each.point):
            is_read = is_plain(each.text)
            text = each.text if is_read else expressions.text(expressions.fill(each.text))
            found.append(each if is_read else Claim(each.point, each.truth, text))
    return tuple(found)


@lru_cache(maxsize=512)
def _told_by(claims: tuple[Claim, ...], full: str, wordings: Wordings) -> Claims:
    """The claims, and what a `full` answer says of each point, which is right as well."""
    reading = read(full, wordings)
    near = nearnesses(_compared_with(claims, wordings), reading)
    said = (
        Claim(point, "right", " ".join(reading.sentences[at].text for at in nearest[0].sentences))
        for point, nearest in near.items()
    )
    return make_claims((*claims, *said), wordings)


@lru_cache(maxsize=512)
def _compared_with(claims: tuple[Claim, ...], wordings: Wordings) -> Claims:
    return make_claims(claims, wordings)


def choice_of(part: Part, known: Values, seed: int = 0) -> ChoiceQuestion:
    """The options a part offers, in the order of `seed`, without links: a formula would give it away. Of what may be
    asked to be told, and of a set, several are chosen."""
    options = tuple(
        replace(option, text=Markup("{}").format(option.text.striptags()))
        for option in make_options(options_of(part.question), known)
    )
    ordered = tuple(shuffled(f"{part.question.id}:{seed}", options)) if seed else options
    return ChoiceQuestion(ordered, several=part.kind in ("givens", "set"))


def options_of(question: Question) -> Sequence[OptionSource]:
    """What a question offers to choose from."""
    if isinstance(question, BorrowedQuestion):
        return question.part.options if isinstance(question.part, ChoicePart) else ()
    return question.options or question.givens


def asked_about(question: Question) -> Mapping[str, str]:
    """What is asked who misjudged an option, by the option."""
    options: Sequence[ContentOption | PartOption] = question.options
    if isinstance(question, BorrowedQuestion):
        options = question.part.options if isinstance(question.part, ChoicePart) else ()
    return {each.id: each.ask for each in options if each.ask}


def order_of(part: Part, known: Values) -> OrderQuestion:
    """The items a part has arranged, without links. Raises ExpressionError."""
    source: OrderSource = part.question
    if isinstance(part.question, BorrowedQuestion):
        assert isinstance(part.question.part, OrderPart), "asked of orders alone"
        source = part.question.part
    made = make_order(source, known)
    items = tuple(replace(each, text=Markup("{}").format(each.text.striptags())) for each in made.items)
    return replace(made, items=items)


def to_arrange(part: Part, values: Values, answers: Answers, seed: int) -> OrderQuestion:
    """The items a part has arranged, as the sitting `seed` shows them: never in the right order."""
    question = order_of(part, known_to(part, values, answers) or scope_of(part.question, values))
    return replace(question, items=tuple(shuffled(f"{part.question.id}:{seed}", question.items, never=question.right)))


def configuration_of(part: Part, known: Values) -> ConfigurationQuestion:
    """The plan whose fields a part asks for. Raises ExpressionError."""
    assert isinstance(part.question, BorrowedQuestion), "asked of parts of problems alone"
    assert isinstance(part.question.part, ConfigurationPart), "asked of configurations alone"
    return replace(make_configuration(part.question.part, known), takes_broken=True)


def layout_of(part: Part, known: Values) -> LayoutQuestion:
    """The cluster on which a part has axes placed. Raises ExpressionError."""
    return make_layout(part.question, known)


def question_of(part: Part, known: Values) -> PlainQuestion:
    """What grades an answer that is not in words. Raises ExpressionError."""
    if part.kind == "number":
        return number_of(part, known)
    if part.kind == "order":
        return order_of(part, known)
    if part.kind == "layout":
        return layout_of(part, known)
    return configuration_of(part, known) if part.kind == "configuration" else choice_of(part, known)


def scene(question: Question, values: Values) -> Scene | None:
    """What a part of a problem stands before; None where a question says all there is."""
    if not isinstance(question, BorrowedQuestion):
        return None
    problem = question.problem
    expressions = Expressions(unlinked(values[problem.id]))
    given = tuple((each.label, render_inline(each.text, expressions)) for each in problem.given)
    return Scene(problem.id, render(problem.statement, expressions), given)


def offered(part: Part, values: Values, answers: Answers, seed: int) -> ChoiceQuestion:
    """The options a part offers in the sitting `seed`."""
    return choice_of(part, known_to(part, values, answers) or scope_of(part.question, values), seed)


def right_answer(part: Part, values: Values, answers: Answers) -> str:
    """What would be answered to a part not in words, after `answers` to those before. Raises ExpressionError."""
    return question_of(part, known_to(part, values, answers) or scope_of(part.question, values)).answer_text
