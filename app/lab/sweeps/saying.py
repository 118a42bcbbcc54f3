"""What a sweep's residuals say, in a sentence. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from app.lab.forms import called
from app.lab.residuals import is_constant
from app.lab.sweeps.knobs import Knob
from app.lab.sweeps.lines import Line, said_of_steps
from app.theory.lab_runs import Point
from app.units import digits, value_text
from labs.spec import Quantity

SEEN = 1e-4  # of theory: less is told in the quantity's own unit


def of_nothing(measured: Sequence[Point], theory: Sequence[Point]) -> list[Point]:
    """What was measured where theory has zero."""
    zeros = {(point.name, point.x) for point in theory if point.y == 0}
    return [point for point in measured if (point.name, point.x) in zeros]


def apart_from(measured: Sequence[Point], theory: Sequence[Point]) -> list[tuple[str, float, float]]:
    """Series, x and measured over theory, less one, wherever theory has more than nothing."""
    known = {(point.name, point.x): point.y for point in theory}
    return [
        (point.name, point.x, point.y / known[point.name, point.x] - 1)
        for point in measured
        if known.get((point.name, point.x))
    ]


def finding_of(
    quantity: Quantity,
    knobs: Sequence[Knob],
    measured: Sequence[Point],
    theory: Sequence[Point],
    lines: Sequence[Line],
    how_final: str,
    of_steps: Sequence[int],
) -> str:
    """What the residuals say, in a sentence."""
    if not measured:
        return "Nothing has been measured yet."
    return f"{quantity.title}{how_final}: {_measured_says(quantity, knobs, measured, theory, lines, of_steps)}"


def _measured_says(
    quantity: Quantity,
    knobs: Sequence[Knob],
    measured: Sequence[Point],
    theory: Sequence[Point],
    lines: Sequence[Line],
    of_steps: Sequence[int],
) -> str:
    apart, none = apart_from(measured, theory), of_nothing(measured, theory)
    if not apart and not none:
        return "measured only. Theory has no figure for it."
    if quantity.dimension == "seconds":
        return said_of_steps(measured, theory, lines, of_steps)
    zero = value_text(0.0, quantity.dimension)
    if some := [point for point in none if point.y != 0]:
        most = max(some, key=lambda point: abs(point.y))
        at = " at ".join(dict.fromkeys((most.name, called(knobs[0].field))))
        return f"{value_text(most.y, quantity.dimension)} with {at} {most.x:g}; theory has {zero}."
    if not apart:
        return f"{zero}, theory to the last digit, at all {len(none)} points."
    known = {(point.name, point.x): point.y for point in theory}
    more = [point.y - known[point.name, point.x] for point in measured if known.get((point.name, point.x))]
    return _said_of_residuals(called(knobs[0].field), quantity, apart, more, len(none))


def _said_of_residuals(
    knob: str, quantity: Quantity, apart: Sequence[tuple[str, float, float]], more: Sequence[float], zeros: int
) -> str:
    """What the residuals have in common: as shares of theory (`apart`: series, x, share), or in base units (`more`).
    `zeros` more points are zero, as theory has them."""
    worst = max(apart, key=lambda each: abs(each[2]))
    if abs(worst[2]) < 1e-9:
        return f"theory to the last digit, at all {len(apart) + zeros} points."
    if abs(worst[2]) < SEEN:
        return f"as theory has it, to {100 * abs(worst[2]):.1g} %, at all {len(apart) + zeros} points."
    signs = {each[2] > 0 for each in apart if abs(each[2]) > 1e-9}
    word = "more" if signs == {True} else "less"
    shares = [abs(each) for _, _, each in apart]
    if len(signs) == 1 and len(apart) > 2 and is_constant(map(abs, more)):
        each = value_text(median(map(abs, more)), quantity.dimension)
        return f"{each} {word} than theory everywhere. A constant: a fixed term that theory leaves out."
    if len(signs) == 1 and len(apart) > 2 and is_constant(shares):
        share = f"{digits(100 * median(shares), 2)} %"
        return f"{share} {word} than theory everywhere. A constant share is a term left out that grows with theory."
    where = f"at most {digits(100 * abs(worst[2]), 2)} % off, at {knob} {worst[1]:g}"
    if len(signs) == 1:
        return f"always {word} than theory, {where}."
    return f"{where}, sometimes above theory and sometimes below."
