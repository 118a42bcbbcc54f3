"""Which rows of the support matrix the tests take: enough for every pair of options, and a share of the rest.

Most mistakes of such a matrix lie in one option or in two that meet (Kuhn, Wallace & Gallo 2004, "Software Fault
Interactions and Implications for Software Testing"). So a set in which every pair that occurs in the matrix occurs is
run each time, and of the remaining rows a sixteenth, which the commit chooses: the same for everybody who tests it, and
another at the next. `RANKZERO_ALL_ROWS=1` (`make matrix`) runs all.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import combinations
from pathlib import Path
from typing import TypeVar

ALL_ROWS = "RANKZERO_ALL_ROWS"
SHARES = 16

Row = TypeVar("Row")
Options = frozenset[tuple[str, str]]


def covering(
    rows: Sequence[Row], options: Callable[[Row], Options], cost: Callable[[Row], float], run_anyhow: Iterable[Row] = ()
) -> list[Row]:
    """Some of `rows`, which with those that are `run_anyhow` have every option and every pair of options that any of
    them has. Greedy: next is always the one with most new pairs for its cost."""
    left = [(row, _pairs(options(row)), cost(row)) for row in rows]
    missing = set().union(*(pairs for _, pairs, _ in left)).difference(*(_pairs(options(row)) for row in run_anyhow))
    taken: list[Row] = []
    while missing:
        row, pairs, _ = max(left, key=lambda each: len(each[1] & missing) / each[2])
        taken.append(row)
        missing -= pairs
    return taken


def _pairs(options: Options) -> set[Hashable]:
    return {*options, *combinations(sorted(options), 2)}


def share_of_this_commit(rows: Iterable[Row]) -> list[Row]:
    """Every sixteenth of `rows`, from the one on that the commit says; all where there is none or all are asked for."""
    commit = this_commit()
    if os.environ.get(ALL_ROWS) or commit is None:
        return list(rows)
    return list(rows)[commit % SHARES :: SHARES]


def this_commit() -> int | None:
    """A number that each commit of this repository has for itself, as good as evenly spread."""
    asked = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=Path(__file__).parent, capture_output=True, text=True, check=False
    )
    return int(asked.stdout[:8], 16) if asked.returncode == 0 else None
