"""`python -m tests.support.fit_constants`: fits the constants to the published tables, and without each publication.

Every publication weighs the same, however many rows it has; an error counts by its size to the power of 1.5, so that
neither one bad row nor a common bias is ignored. Logarithms of predictions are close to linear in those of the
constants: each round takes their slopes, searches on the straight lines, and keeps what the engine confirms.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass, fields, replace
from math import exp, inf, log

from app.content.published import FITS, FOLDER, Table, published_tables
from app.core.settings import ROOT
from app.theory.planner.engine.constants import FITTED, Constants

CONTENT = ROOT / "cards"
STEPS = (0.04, 0.02, 0.01, 0.005, 0.0025)
ROUNDS, SLOPE, FARTHEST = 3, 0.02, 0.15  # of a constant: what a slope is taken over, and how far a round goes
LIMITS = {"matmul_efficiency": 1.0, "memory_efficiency": 1.0, "network_efficiency": 1.0, "contention": 1.0}
NAMES = [field.name for field in fields(Constants)]


@dataclass(frozen=True)
class Weighed:
    """The logarithm of one prediction over its measurement, and what it counts in the mean."""

    error: float
    weight: float


def weighed(tables: Iterable[Table], constants: Constants) -> list[Weighed]:
    """Mean over publications of the mean over their tables of the mean over rows, as weights."""
    by_publication: dict[str, list[list[float]]] = defaultdict(list)
    for table in tables:
        errors = [log(each.predicted / each.measured) for each in table.comparisons(constants) if each.is_time]
        by_publication[table.publication].append(errors)
    return [
        Weighed(error, 1.0 / (len(by_publication) * len(group) * len(errors)))
        for group in by_publication.values()
        for errors in group
        for error in errors
    ]


def _mean(found: Iterable[Weighed]) -> float:
    return sum(each.weight * abs(each.error) ** 1.5 for each in found)


def loss(tables: Iterable[Table], constants: Constants) -> float:
    """Mean over publications of the mean over their tables of the mean over rows of |log error|^1.5."""
    return _mean(weighed(tables, constants))


def fit(tables: list[Table], start: Constants = FITTED, rounds: int = ROUNDS) -> Constants:
    """The constants with the least loss on `tables`."""
    best, found = start, weighed(tables, start)
    far = FARTHEST
    for _ in range(rounds):
        slopes = [_slopes(tables, best, name, found) for name in NAMES]
        trial = _moved(best, _descend(found, slopes, best, far))
        tried = weighed(tables, trial)
        if _mean(tried) < _mean(found):
            best, found = trial, tried
        else:
            far /= 4
    return best


def _slopes(tables: list[Table], at: Constants, name: str, found: list[Weighed]) -> list[float]:
    """How each error grows with the logarithm of a constant; downwards, as shares end at 1."""
    there = weighed(tables, _moved(at, {name: -SLOPE}))
    return [(here.error - below.error) / SLOPE for here, below in zip(found, there, strict=True)]


def _descend(found: list[Weighed], slopes: list[list[float]], at: Constants, far: float) -> dict[str, float]:
    """How far to move each constant, in logarithms, for the least loss on straight lines: a pattern search."""
    moves = dict.fromkeys(NAMES, 0.0)
    errors, least = [each.error for each in found], _mean(found)
    for step in STEPS:
        improved = True
        while improved:
            improved = False
            for name, line in zip(NAMES, slopes, strict=True):
                for sign in (step, -step):
                    to = moves[name] + sign
                    if abs(to) > far or getattr(at, name) * exp(to) > LIMITS.get(name, inf):
                        continue
                    trial = [error + sign * slope for error, slope in zip(errors, line, strict=True)]
                    now = sum(each.weight * abs(error) ** 1.5 for each, error in zip(found, trial, strict=True))
                    if now < least - 1e-9:
                        moves[name], errors, least, improved = to, trial, now, True
    return moves


def _moved(constants: Constants, moves: Mapping[str, float]) -> Constants:
    return replace(constants, **{name: getattr(constants, name) * exp(move) for name, move in moves.items()})


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
        lines.append(f"  {publication}: {_line(_rounded(fit(rest, fitted, rounds=1)))}")
    (CONTENT / FOLDER / FITS).write_text("\n".join(lines) + "\n")
    print("constants.FITTED:", _line(fitted))  # noqa: T201


if __name__ == "__main__":
    main()
