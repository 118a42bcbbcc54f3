"""What is left between measured points and a law, read as a pattern along the axis. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import sqrt

from app.units import digits

_SURE = 1.645  # standard deviations: one in twenty by chance
_LEAST = 4  # points with fewer have no pattern to speak of
_TIE = 1e-9
_ALIKE = 0.1  # of the largest: residuals that differ by less are one factor


def durbin_watson(apart: Sequence[float]) -> float | None:
    """Σ(rᵢ − rᵢ₋₁)² / Σrᵢ²: about 2 where neighbours have nothing to do with each other, near 0 where they are alike,
    near 4 where they take turns. None where nothing is left. Source: Durbin and Watson 1950."""
    squares = sum(each * each for each in apart)
    return sum((b - a) ** 2 for a, b in pairwise(apart)) / squares if squares else None


def is_patterned(apart: Sequence[float]) -> bool:
    """Whether neighbours along the axis are more alike than chance makes them once in twenty times: the ratio's
    variance is 4(n − 2)/(n² − 1) where nothing but scatter is left. Source: von Neumann 1941."""
    ratio, count = durbin_watson(apart), len(apart)
    if ratio is None or count < _LEAST:
        return False
    return ratio < 2 - _SURE * sqrt(4 * (count - 2) / (count * count - 1))


def is_constant(sizes: Iterable[float]) -> bool:
    """Whether they differ by less than a tenth of the largest."""
    every = list(sizes)
    return max(every) - min(every) < _ALIKE * max(every)


def percent_apart(measured: float, law: float) -> str:
    """Measured over the law, less one."""
    return f"{100 * (measured / law - 1):+.1f} %".replace("-", "−") if law else "–"


def pattern(axis: str, places: Sequence[tuple[float, float]], is_exact: bool, law: str = "theory") -> str:
    """What residuals do along the axis, in a sentence that says no more than they show.

    `places` are x and the residual as a share, in any order; of what `is_exact`, as bytes are, nothing is scatter.
    `law` is what they are residuals of.
    """
    ordered = sorted(places)
    apart = [each for _, each in ordered]
    (first_x, first), (last_x, last) = ordered[0], ordered[-1]
    if len(apart) == 1:
        return f"One point, {_signed(first)}."
    ends = f"from {_signed(first)} at {axis} {first_x:g} to {_signed(last)} at {last_x:g}"
    is_one_sided = all(each > _TIE for each in apart) or all(each < -_TIE for each in apart)
    if is_one_sided and is_constant(map(abs, apart)):
        return f"Much the same everywhere, {ends}: a factor that {law} lacks."
    steps = [b - a for a, b in pairwise(apart)]
    if len(apart) > 2 and (min(steps) > 0 or max(steps) < 0):
        towards, side = "Rises" if last > first else "Falls", "always on one side" if is_one_sided else f"through {law}"
        return f"{towards} point by point {ends}, {side}: a term that grows in another way than {law}'s."
    if is_one_sided:
        return _said_of_one_side(apart, ends, is_exact, law)
    return _said_of_both_sides(apart, ends, is_exact, law)


def _said_of_one_side(apart: Sequence[float], ends: str, is_exact: bool, law: str) -> str:
    said = f"Always {'above' if apart[0] > 0 else 'below'} {law}, {ends}"
    if is_exact:
        return f"{said}: a term, for bytes hardly scatter."
    return f"{said}. Chance alone puts {len(apart)} points on one side once in {2 ** (len(apart) - 1)} times."


def _said_of_both_sides(apart: Sequence[float], ends: str, is_exact: bool, law: str) -> str:
    if is_exact:
        return f"On both sides, {ends}: a term that grows in another way than {law}'s, for bytes hardly scatter."
    if len(apart) < _LEAST:
        return f"On both sides, {ends}: too few points for a pattern."
    ratio = f"Durbin–Watson {digits(durbin_watson(apart) or 0.0, 2)}"
    if is_patterned(apart):
        return f"On both sides, and neighbours are alike ({ratio}, where 2 is scatter): a term that {law} lacks."
    return f"On both sides with no order along the axis ({ratio}): scatter."


def _signed(share: float) -> str:
    return f"{'+' if share >= 0 else '−'}{digits(100 * abs(share), 2)} %"
