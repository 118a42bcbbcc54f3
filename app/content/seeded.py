"""Variants drawn by seed: parameters, and what is computed from them. The same for ever on every machine.

Cards, problems and interviews draw with it; what they store is the seed or what was drawn, never a key.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from app.content.live import ExpressionError, Expressions, at

MOST_DRAWS = 200
CHECKED_SEEDS = range(200)  # what the content checks look at

Drawn = Mapping[str, Any]
Choices = Mapping[str, Sequence[int | float | str]]


def draw(name: str, choices: Choices, let: Mapping[str, str], where: str | None, seed: int) -> dict[str, object]:
    """One of each of `choices`, decided by `name` (item and revision) and `seed`.

    Raises ExpressionError when none of the draws satisfies `where`.
    """
    # a seeded generator, not a secret: the same seed must give the same variant on every machine
    source = random.Random(f"{name}:{seed}")  # noqa: S311
    for _ in range(MOST_DRAWS):
        drawn: dict[str, object] = {each: source.choice(values) for each, values in choices.items()}
        if _is_taken(where, tuple(let.items()), tuple(drawn.items())):
            return drawn
    with at("where"):
        raise ExpressionError(f"no combination of parameters satisfies {where!r}")


@lru_cache(maxsize=4096)  # seeds draw the same few hundred combinations again and again
def _is_taken(where: str | None, let: tuple[tuple[str, str], ...], drawn: tuple[tuple[str, object], ...]) -> bool:
    values = with_lets(dict(let), dict(drawn))
    with at("where"):
        return where is None or Expressions(values).truth(where)


def with_lets(let: Mapping[str, str], drawn: Drawn) -> dict[str, object]:
    """Drawn parameters and what `let` computes from them."""
    found = Expressions(drawn)
    for name, expression in let.items():
        with at("let", name):
            found.let(name, expression)
    return found.values
