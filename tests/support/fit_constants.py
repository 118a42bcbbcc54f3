"""`python -m tests.support.fit_constants`: fits the constants to the published tables, and without each publication.

Every publication weighs the same, however many rows it has; an error counts by its size to the power of 1.5, so that
neither one bad row nor a common bias is ignored. A pattern search: there are five numbers, and the result is rounded to
three digits anyway.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import astuple, fields, replace
from math import log
from statistics import mean

from app.content.published import FITS, FOLDER, Table, published_tables
from app.core.settings import ROOT
from app.theory.planner.engine.constants import FITTED, Constants

CONTENT = ROOT / "cards"
STEPS = (0.08, 0.04, 0.02, 0.01, 0.005)
LIMITS = {"matmul_efficiency": 1.0, "memory_efficiency": 1.0, "network_efficiency": 1.0, "contention": 1.0}


def loss(tables: Iterable[Table], constants: Constants) -> float:
    """Mean over publications of the mean over their tables of the mean over rows of |log error|^1.5."""
    by_publication: dict[str, list[float]] = defaultdict(list)
    for table in tables:
        errors = [log(each.predicted / each.measured) for each in table.comparisons(constants) if each.is_time]
        by_publication[table.publication].append(mean(abs(error) ** 1.5 for error in errors))
    return mean(mean(losses) for losses in by_publication.values())


def fit(tables: list[Table], start: Constants = FITTED) -> Constants:
    """The constants with the least loss on `tables`."""
    best, least = start, loss(tables, start)
    for step in STEPS:
        improved = True
        while improved:
            improved = False
            # Pairs take four times as many trials: they are looked at where no single constant gains.
            for moves in (_alone(), _together()):
                for trial in _neighbours(best, step, moves):
                    found = loss(tables, trial)
                    if found < least - 1e-7:
                        best, least, improved = trial, found, True
                if improved:
                    break
    return best


def _alone() -> list[dict[str, int]]:
    return [{field.name: sign} for field in fields(Constants) for sign in (1, -1)]


def _together() -> list[dict[str, int]]:
    names = [field.name for field in fields(Constants)]
    return [{a: i, b: j} for a in names for b in names if a < b for i in (1, -1) for j in (1, -1)]


def _neighbours(constants: Constants, step: float, moves: list[dict[str, int]]) -> Iterable[Constants]:
    """One constant larger or smaller by a share of itself, alone or with another."""
    for move in moves:
        values = {name: getattr(constants, name) * (1 + sign * step) for name, sign in move.items()}
        if all(value <= LIMITS.get(name, value) for name, value in values.items()):
            yield replace(constants, **values)


def _rounded(constants: Constants) -> Constants:
    return Constants(*(float(f"{value:.3g}") for value in astuple(constants)))


def _line(constants: Constants) -> str:
    return "{" + ", ".join(f"{field.name}: {getattr(constants, field.name)!r}" for field in fields(Constants)) + "}"


def main() -> None:
    tables = [table for table in published_tables(CONTENT) if table.fitted]
    lines = ["# Written by python -m tests.support.fit_constants"]
    fitted = _rounded(fit(tables))
    lines += ["without:"]
    for publication in sorted({table.publication for table in tables}):
        rest = [table for table in tables if table.publication != publication]
        lines.append(f"  {publication}: {_line(_rounded(fit(rest, fitted)))}")
    (CONTENT / FOLDER / FITS).write_text("\n".join(lines) + "\n")
    print("constants.FITTED:", _line(fitted))  # noqa: T201


if __name__ == "__main__":
    main()
