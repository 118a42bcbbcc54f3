"""Variants drawn by seed: parameters, and what is computed from them. The same for ever on every machine.

Cards, problems and interviews draw with it; what they store is the seed or what was drawn, never a key.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any

from app.content.live import ExpressionError, Expressions, at

MOST_DRAWS = 200
MOST_AGAIN = 16  # where two mistakes lead to one number; a question of which they always do has to live with it
CHECKED_SEEDS = range(200)  # what the content checks look at

Drawn = Mapping[str, Any]
Choices = Mapping[str, Sequence[int | float | str]]


@dataclass(frozen=True)
class Lost:
    """Mistakes that a variant cannot name: those that lead to the number of another, and those that lead to the key."""

    met: int = 0
    hidden: int = 0


def draw(
    name: str,
    choices: Choices,
    let: Mapping[str, str],
    where: str | None,
    seed: int,
    lost: Callable[[Drawn], Lost] = lambda _: Lost(),
) -> dict[str, object]:
    """One of each of `choices`, decided by `name` (item and revision) and `seed`.

    A draw at which two mistakes meet is drawn again, for one at which none do and no more of them are hidden than at
    first; where the first few all are no better, the first stays. Raises ExpressionError when none of the draws
    satisfies `where`.
    """
    draws = _draws(name, choices, let, where, seed)
    parameters, values = next(draws)
    at_first = lost(values)
    if not at_first.met:
        return parameters
    for again, values in islice(draws, MOST_AGAIN):
        now = lost(values)
        if not now.met and now.hidden <= at_first.hidden:
            return again
    return parameters


def clearest(
    name: str,
    choices: Choices,
    let: Mapping[str, str],
    where: str | None,
    seed: int,
    hidden: Callable[[Drawn], int],
) -> dict[str, object]:
    """As `draw`, for a sitting, which stores what it drew: of the first few draws the one at which fewest mistakes lead
    to what is right (`hidden`), the first of several. Two that meet are named together. Raises ExpressionError."""
    fewest: int | None = None
    clear: dict[str, object] = {}
    for parameters, values in islice(_draws(name, choices, let, where, seed), 1 + MOST_AGAIN):
        now = hidden(values)
        if fewest is None or now < fewest:
            fewest, clear = now, parameters
        if fewest == 0:
            break
    return clear


def _draws(
    name: str, choices: Choices, let: Mapping[str, str], where: str | None, seed: int
) -> Iterator[tuple[dict[str, object], Drawn]]:
    """Draws that satisfy `where`, among the first there are, each with what `let` computes from it. Raises
    ExpressionError where none does."""
    # a seeded generator, not a secret: the same seed must give the same variant on every machine
    source, is_satisfied = random.Random(f"{name}:{seed}"), False  # noqa: S311
    for _ in range(MOST_DRAWS):
        drawn: dict[str, object] = {each: source.choice(values) for each, values in choices.items()}
        values = _taken(where, tuple(let.items()), tuple(drawn.items()))
        if values is not None:
            is_satisfied = True
            yield drawn, values
    if not is_satisfied:
        with at("where"):
            raise ExpressionError(f"no combination of parameters satisfies {where!r}")


@lru_cache(maxsize=4096)  # seeds draw the same few hundred combinations again and again
def _taken(where: str | None, let: tuple[tuple[str, str], ...], drawn: tuple[tuple[str, object], ...]) -> Drawn | None:
    """The values of a draw that satisfies `where`; None of one that does not."""
    values = with_lets(dict(let), dict(drawn))
    with at("where"):
        return values if where is None or Expressions(values).truth(where) else None


def with_lets(let: Mapping[str, str], drawn: Drawn) -> dict[str, object]:
    """Drawn parameters and what `let` computes from them."""
    found = Expressions(drawn)
    for name, expression in let.items():
        with at("let", name):
            found.let(name, expression)
    return found.values
