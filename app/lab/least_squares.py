"""Least squares by the normal equations, for a handful of unknowns. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

TELLING = 3  # degrees of freedom: with fewer, no verdict rests on a fit
# Student's t that a 95 % interval reaches to on both sides, by degrees of freedom from 1. Source: Student 1908.
_STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
_NORMAL = 1.959964  # and with no end of them


@dataclass(frozen=True)
class Fitted:
    """y ≈ Σ coefficient · column. `errors` are the coefficients' standard errors, None with no points to spare.

    `residuals` are measured less fitted, in the order of the points.
    """

    coefficients: tuple[float, ...]
    errors: tuple[float | None, ...]
    residuals: tuple[float, ...]

    @property
    def spare(self) -> int:
        """Degrees of freedom: points more than coefficients."""
        return len(self.residuals) - len(self.coefficients)

    @property
    def tells(self) -> bool:
        """Whether there are enough points for a verdict."""
        return tells(len(self.residuals), len(self.coefficients))

    @property
    def margins(self) -> tuple[float | None, ...]:
        """Half the coefficients' 95 % intervals; None with no points to spare."""
        return tuple(None if error is None else error * student_t(self.spare) for error in self.errors)

    def is_unknown(self, at: int) -> bool:
        """Whether coefficient `at` may as well be nothing: its interval takes in 0, or is wider than the value."""
        margin = self.margins[at]
        return margin is not None and margin > abs(self.coefficients[at])


def student_t(degrees: int) -> float:
    """How many standard errors a 95 % interval reaches to each side; `degrees` of freedom, 1 or more.

    From a table up to 10, beyond it by the expansion in 1/degrees. Source: Fisher 1941."""
    if degrees <= len(_STUDENT):
        return _STUDENT[degrees - 1]
    z = _NORMAL
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
    )
    return sum(term / float(degrees) ** power for power, term in enumerate(terms))


def tells(points: int, unknowns: int) -> bool:
    """Whether there are enough points for a verdict on so many unknowns."""
    return points - unknowns >= TELLING


def too_few(points: int, unknowns: int) -> str:
    """Why no verdict rests on a fit, and how many points it takes, in a sentence."""
    spare = points - unknowns
    freedom = f"{spare} degree{'' if spare == 1 else 's'} of freedom"
    numbers = f"{unknowns} number{'' if unknowns == 1 else 's'}"
    return f"{points} points for {numbers} leave {freedom}, and a verdict takes {TELLING}: {unknowns + TELLING} points"


def fit(rows: Sequence[Sequence[float]], measured: Sequence[float], relative: bool = False) -> Fitted | None:
    """The coefficients of the columns of `rows` that leave the least squares; with `relative`, of the residuals over
    what was measured. None where the points do not tell them apart."""
    weights = [1 / value if relative and value else 1.0 for value in measured]
    scaled = [[weight * each for each in row] for weight, row in zip(weights, rows, strict=True)]
    aims = [weight * value for weight, value in zip(weights, measured, strict=True)]
    unknowns = len(rows[0]) if rows else 0
    if not unknowns or len(rows) < unknowns:
        return None
    sizes = [sqrt(sum(row[at] ** 2 for row in scaled)) for at in range(unknowns)]
    if not all(sizes):
        return None
    # columns of length one, so that what cannot be told apart shows as a determinant near nothing
    unit = [[row[at] / sizes[at] for at in range(unknowns)] for row in scaled]
    normal = [[sum(row[i] * row[j] for row in unit) for j in range(unknowns)] for i in range(unknowns)]
    inverse = _inverse(normal)
    if inverse is None:
        return None
    right = [sum(row[at] * aim for row, aim in zip(unit, aims, strict=True)) for at in range(unknowns)]
    found = [sum(inverse[i][j] * right[j] for j in range(unknowns)) / sizes[i] for i in range(unknowns)]
    left = [aim - sum(a * c for a, c in zip(row, found, strict=True)) for row, aim in zip(scaled, aims, strict=True)]
    spare = len(rows) - unknowns
    variance = sum(each * each for each in left) / spare if spare else None
    errors = tuple(
        None if variance is None else sqrt(max(0.0, variance * inverse[at][at])) / sizes[at] for at in range(unknowns)
    )
    fitted = [sum(a * c for a, c in zip(row, found, strict=True)) for row in rows]
    return Fitted(tuple(found), errors, tuple(y - f for y, f in zip(measured, fitted, strict=True)))


_SINGULAR = 1e-9


def _inverse(matrix: Sequence[Sequence[float]]) -> list[list[float]] | None:
    """By elimination with the largest pivot; None where there is none to speak of."""
    size = len(matrix)
    work = [[*row, *(float(i == j) for j in range(size))] for i, row in enumerate(matrix)]
    for at in range(size):
        pivot = max(range(at, size), key=lambda row: abs(work[row][at]))
        if abs(work[pivot][at]) < _SINGULAR:
            return None
        work[at], work[pivot] = work[pivot], work[at]
        work[at] = [each / work[at][at] for each in work[at]]
        for row in range(size):
            if row != at:
                factor = work[row][at]
                work[row] = [a - factor * b for a, b in zip(work[row], work[at], strict=True)]
    return [row[size:] for row in work]
