"""What a sitting draws, and what its expressions then see."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from app.content import interview_draws, problem_draws, seeded
from app.content.composed import Composed
from app.content.interview_schemas import Interview
from app.content.problem_schemas import Problem
from app.content.rounds import Round


def draw(interview: Interview, seed: int) -> dict[str, object]:
    """The parameters of a sitting, drawn by seed. They are stored: a later revision must not change a sitting."""
    if isinstance(interview, Round):
        return {name: problem_draws.draw_for_sitting(each, seed) for name, each in interview.problems.items()}
    return interview_draws.draw(interview, seed)


def draw_anew(interview: Interview, before: Mapping[str, object], seeds: Iterable[int]) -> dict[str, object]:
    """What a sitting draws that follows on one that drew `before`: of the draws by `seeds`, which there are some of,
    the first that has fewest numbers in common with it."""
    draws = [draw(interview, seed) for seed in seeds]
    return min(draws, key=lambda each: in_common(each, before))


def in_common(drawn: Mapping[str, object], before: Mapping[str, object]) -> int:
    """How many numbers two sittings of one interview share."""
    shared = 0
    for name, value in drawn.items():
        other = before.get(name)
        if isinstance(value, Mapping):
            shared += in_common(value, other if isinstance(other, Mapping) else {})
        else:
            shared += name in before and value == other
    return shared


def values_of(interview: Interview, drawn: Mapping[str, object]) -> dict[str, object]:
    """Drawn parameters (those the interview still has, with its first choice for new ones) and what `let` computes; of
    a round, by problem, with what is right in each of its parts; of a generated interview, by what it borrows from."""
    if isinstance(interview, Round):
        return {name: _values_in(problem, drawn.get(name)) for name, problem in interview.problems.items()}
    if isinstance(interview, Composed):
        return {name: _values_from(source, drawn["values"]) for name, source in interview.sources.items()}
    return _values_for(interview, drawn)


def _values_from(source: Interview | Problem, drawn: object) -> dict[str, object]:
    """The values of what questions were borrowed from."""
    found = drawn.get(source.id) if isinstance(drawn, Mapping) else None
    if isinstance(source, Problem):
        return _values_in(source, found)
    return _values_for(source, found if isinstance(found, Mapping) else {})


def _values_for(interview: Interview, drawn: Mapping[str, object]) -> dict[str, object]:
    kept = {name: drawn.get(name, choices[0]) for name, choices in interview.parameters.items()}
    return seeded.with_lets(interview.let, kept)


def _values_in(problem: Problem, drawn: object) -> dict[str, object]:
    """The values of a problem in a round; drawn anew where its content has other parameters since."""
    kept = drawn if isinstance(drawn, Mapping) and set(drawn) == set(problem.parameters) else None
    if kept is None:
        kept = problem_draws.draw(problem, problem_draws.LARGEST_SEED + 1)
    values = seeded.with_lets(problem.let, kept)
    return {**values, "answer": problem_draws.right_numbers(problem, values)}
