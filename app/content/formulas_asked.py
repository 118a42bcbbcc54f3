"""Which formulas of the theory the key of a question is made of, so that no sitting asks one of them twice. Pure."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from app.content import problem_draws, seeded
from app.content.composed import ChosenQuestion
from app.content.interview_schemas import Question
from app.content.rounds import BorrowedQuestion
from app.theory.formulas import FORMULAS

Formula = tuple[str, tuple[str, ...]]  # its name, and what is fixed in it, such as the stage


def formulas_of(question: Question) -> frozenset[Formula]:
    """The formulas that the key of a number is computed by, each where it is not an input of another; none of what is
    no number. A part of a problem is written out in its earlier parts' numbers: what its problem computes that comes to
    the same says by which formula."""
    if question.kind != "number" or not question.key:
        return frozenset()
    let = _let_of(question)
    found = frozenset(_outermost(question.key, let, ()))
    if found or not isinstance(question, BorrowedQuestion):
        return found
    further = _outermost(question.harder.key, let, ()) if question.harder else ()
    return frozenset((*_by_value(question), *further))


def _by_value(question: BorrowedQuestion) -> Iterator[Formula]:
    problem = question.problem
    values = seeded.with_lets(problem.let, problem_draws.draw(problem, 0))
    right = problem_draws.right_numbers(problem, values)[question.part.id]
    for name, expression in problem.let.items():
        value = values[name]
        if isinstance(value, float) and value == right:
            yield from _outermost(expression, problem.let, (name,))


def _let_of(question: Question) -> Mapping[str, str]:
    if isinstance(question, BorrowedQuestion):
        return question.problem.let
    return question.source.let if isinstance(question, ChosenQuestion) else {}


def _outermost(expression: str, let: Mapping[str, str], above: tuple[str, ...]) -> Iterator[Formula]:
    try:
        tree = ast.parse(expression.strip(), mode="eval").body
    except SyntaxError:  # an expression of templates that Python does not have
        return
    yield from _in_tree(tree, let, above)


def _in_tree(node: ast.AST, let: Mapping[str, str], above: tuple[str, ...]) -> Iterator[Formula]:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in FORMULAS.by_name:
        told = {each.arg: each.value.value for each in node.keywords if isinstance(each.value, ast.Constant)}
        fixed = (f"{name}={value!r}" for name, value in told.items() if name == "stage" or isinstance(value, str))
        yield node.func.id, tuple(sorted(fixed))
    elif isinstance(node, ast.Name) and node.id in let and node.id not in above:
        yield from _outermost(let[node.id], let, (*above, node.id))
    else:
        for child in ast.iter_child_nodes(node):
            yield from _in_tree(child, let, above)
