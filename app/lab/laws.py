"""What is to be said of the laws fitted in a program's figure: how far what was measured lies from its own, and from
where on one is ahead of another, by law and measured. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from app.theory.lab_runs import Point
from app.units import bytes_text, digits
from labs.spec import Figure

_Series = Mapping[float, float]


def said_of_laws(figure: Figure, points: Iterable[Point]) -> str:
    """In a sentence or two; empty where no series has a law of its own."""
    series: dict[str, dict[float, float]] = {}
    for point in points:
        if point.y > 0:
            series.setdefault(point.name, {})[point.x] = point.y
    measured = [name for name in series if not figure.is_fitted(name)]
    laws = {figure.law_of(name) or measured[0]: name for name in series if figure.is_fitted(name) and measured}
    known = [name for name in measured if name in laws and set(series[name]) & set(series[laws[name]])]
    if not known:
        return ""
    beside = ", ".join(f"{name} {_factors(series[name], series[laws[name]])}" for name in known)
    said = (
        f"Measured over its own law: {beside}."
        if len(measured) > 1
        else f"Measured is {beside.split(' ', 1)[1]} the law."
    )
    pairs = [name for name in known if len(series[laws[name]]) > 1]
    if len(pairs) > 1 and figure.is_affine and figure.x_unit == "B":
        said += f" {_ahead(pairs, series, laws)}"
    return said


def _factors(measured: _Series, law: _Series) -> str:
    factors = [measured[x] / law[x] for x in measured if x in law]
    low, high = digits(min(factors), 2), digits(max(factors), 2)
    return f"{low} ×" if low == high else f"{low} to {high} ×"


def _ahead(pairs: Sequence[str], series: Mapping[str, _Series], laws: Mapping[str, str]) -> str:
    """Of the first two, from which size on the one whose law rises less is the faster."""
    first, second = sorted(pairs[:2], key=lambda name: _line(series[laws[name]])[1])
    (start, slope), (other_start, other_slope) = (_line(series[laws[name]]) for name in (first, second))
    crossing = (start - other_start) / (other_slope - slope) if other_slope > slope else 0.0
    by_law = f"from {bytes_text(crossing, 2)} on" if crossing > 0 else "at any size"
    measured = _where(series[first], series[second])
    return f"By law the {first} is faster than the {second} {by_law}; measured, {measured}."


def _where(first: _Series, second: _Series) -> str:
    both = sorted(set(first) & set(second))
    wins = [x for x in both if first[x] < second[x]]
    if not wins or len(wins) == len(both):
        return "at every size" if wins else "at no size"
    if wins == both[-len(wins) :]:
        return f"from {bytes_text(wins[0], 2)} on"
    return f"at {len(wins)} of {len(both)} sizes"


def _line(law: _Series) -> tuple[float, float]:
    """Where an affine law starts, and how much it rises with each unit of x."""
    (x, y), (end_x, end_y) = min(law.items()), max(law.items())
    slope = (end_y - y) / (end_x - x)
    return y - slope * x, slope
