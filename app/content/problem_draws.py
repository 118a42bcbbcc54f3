"""The numbers of a problem: drawn by seed at one of its levels, and what is right for them. Pure.

Practice issues seeds up to `LARGEST_SEED`; a round draws beyond them, so that nobody has met its numbers there by seed.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from app.content import seeded
from app.content.live import Expressions, at
from app.content.problem_schemas import NumberPart, Problem
from app.content.questions import lost_slips

LARGEST_SEED = 2**31 - 1  # of practice


def level_of(problem: Problem, seed: int) -> int:
    """Which of the problem's levels a seed belongs to, 0 the easiest: seeds take turns."""
    return seed % len(problem.levels) if problem.levels else 0


def draw(problem: Problem, seed: int) -> dict[str, object]:
    """The parameters of `seed`, such that no two slips meet where that can be. Raises ExpressionError when none of the
    draws satisfies the conditions."""
    name = f"{problem.id}:{problem.revision}"
    return seeded.draw(name, problem.parameters, problem.let, _where(problem, seed), seed, partial(_lost, problem))


def draw_for_sitting(problem: Problem, seed: int) -> dict[str, object]:
    """The parameters of a sitting that is the `seed`-th, beyond the seeds of practice, with the fewest slips that lead
    to what is right. Raises ExpressionError."""
    beyond, name = LARGEST_SEED + 1 + seed, f"{problem.id}:{problem.revision}"
    where = _where(problem, beyond)
    hidden = partial(_lost, problem)
    return seeded.clearest(name, problem.parameters, problem.let, where, beyond, lambda values: hidden(values).hidden)


def _where(problem: Problem, seed: int) -> str | None:
    """The condition on the draws of a seed: the problem's, and its level's."""
    where = problem.where
    if problem.levels:
        narrowed = problem.levels[level_of(problem, seed)].where
        where = f"({where}) and ({narrowed})" if where else narrowed
    return where


def _lost(problem: Problem, values: Mapping[str, object]) -> seeded.Lost:
    """What a variant cannot name in all its number parts."""
    seen = {**values, "answer": right_numbers(problem, values)}
    met = hidden = 0
    for index, part in enumerate(problem.parts):
        if isinstance(part, NumberPart):
            with at("parts", index):
                found = lost_slips(part, seen)
            met, hidden = met + found.met, hidden + found.hidden
    return seeded.Lost(met, hidden)


def right_numbers(problem: Problem, values: Mapping[str, object]) -> dict[str, float]:
    """What is right in each number part, in base units, as later parts see it. Raises ExpressionError."""
    found: dict[str, float] = {}
    for index, part in enumerate(problem.parts):
        if isinstance(part, NumberPart):
            with at("parts", index, "key"):
                found[part.id] = float(Expressions({**values, "answer": dict(found)}).number(part.key))
    return found
