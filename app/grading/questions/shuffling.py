"""The order in which options, items and right sides are shown: decided by a seed, the same for ever."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

MOST_TRIES = 20


def shuffled(name: str, items: Sequence[T], never: Sequence[T] | None = None) -> list[T]:
    """`items` in the order of `name` (of the item asked, its revision and the seed), and not in the order `never`.

    Where all orders look like `never`, as with two equal steps, it comes all the same.
    """
    source = random.Random(name)  # noqa: S311 - not a secret: the same name must give the same order on every machine
    shown = list(items)
    for _ in range(MOST_TRIES):
        source.shuffle(shown)
        if never is None or shown != list(never):
            break
    return shown
