"""Mistakes in building a number up, found by building it up with one or two of its parts wrong.

A key is a tree of sums, products and formulas. Each node knows what may go wrong at it: a term left out, a factor not
applied, a formula taken for another case. Trying all of them names slips that nobody listed. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, islice
from math import isfinite

from app.units import CLOCK, factor_of

ONE_TOLERANCE = 0.006  # relative: three figures of an answer, and no room for a guess
TWO_TOLERANCE = 0.002  # two mistakes reach many numbers, so they must be met closely
AS_NEAR = 1.002  # times as far off as the nearest: what is measured is a few bytes off what is typed
MOST_PAIRS = 1500
MOST_TERMS = 10  # of a sum that is tried with any of them left out


@dataclass(frozen=True)
class Change:
    """One thing that may be done wrong at a node. `says` follows “It looks as if ”."""

    says: str
    value: Callable[[], float | None]


@dataclass(frozen=True)
class Node:
    """A part of a number: `terms` are added, or `factors` multiplied, each with its sign or exponent."""

    label: str
    value: float
    terms: tuple[tuple[int, Node], ...] = ()
    factors: tuple[tuple[int, Node], ...] = ()
    changes: tuple[Change, ...] = ()


Path = tuple[int, ...]
Wrong = Mapping[Path, float | None]  # at a path another value; None: left out


@dataclass(frozen=True)
class Slip:
    """A way to be wrong, and the number it leads to."""

    path: Path
    replaced: float | None
    says: str
    term: Node | None = None  # that is left out of a sum
    is_a_factor: bool = False  # that is not applied
    short: str = ""  # the same in few words, where `says` does not do


@dataclass(frozen=True)
class Mistake:
    """One slip or two, and the number they lead to."""

    slips: tuple[Slip, ...]
    value: float

    @property
    def says(self) -> str:
        return " and ".join(slip.says for slip in self.slips)


def explained(node: Node, value: float, tolerance: float, two: bool = False) -> str | None:
    """What was done wrong if `value` comes of it, in words; where two mistakes lead to the same number, both."""
    found = mistakes(node, value, tolerance, two)
    return ", or ".join(list(dict.fromkeys(each.says for each in found))[:2]) or None


def mistakes(node: Node, value: float, tolerance: float, two: bool = False) -> list[Mistake]:
    """What was done wrong if `value` comes of it: one slip, or `two` at once. Empty where nothing fits.

    Those that come closest. `tolerance` is that of the right answer: what would count as right explains nothing.
    """
    slips = list(_slips(node, ()))
    within = TWO_TOLERANCE if two else ONE_TOLERANCE
    fitting: list[tuple[float, Mistake]] = []
    for chosen in islice(combinations(slips, 2) if two else ((slip,) for slip in slips), MOST_PAIRS):
        if two and (_overlap(chosen[0].path, chosen[-1].path) or all(slip.is_a_factor for slip in chosen)):
            continue  # whoever leaves out several factors may have left out any
        found = _evaluated(node, {slip.path: slip.replaced for slip in chosen}, ())
        if not found or not isfinite(found) or abs(found - node.value) <= tolerance * abs(node.value):
            continue
        if abs(found - value) <= within * abs(found):
            fitting.append((round(abs(found - value) / abs(found), 6), Mistake(chosen, found)))
    least = min((off for off, _ in fitting), default=0.0)
    return [each for off, each in fitting if off == least]


def left_out(node: Node, value: float, within: float) -> list[tuple[Node, ...]]:
    """The terms of a sum without which it comes nearest to `value`; none where it comes no nearer than `within` times.

    However many: whoever counts one term of four left out three. Of ways that come as near, those with the fewest
    terms; of these the one that stops before the end of the sum, or else all. What is taken away is not left out.
    """
    ways = ways_left_out(node, value, within)
    plain = [way for way in ways if len(way) == len(ways[0])]
    stopped = [way for way in plain if way == _terms_added(node)[-len(way) :]]
    return stopped or plain


def ways_left_out(node: Node, value: float, within: float) -> list[tuple[Node, ...]]:
    """All that come as near as the nearest, those with fewer terms first; empty where none comes near."""
    terms = _terms_added(node)
    found: list[tuple[float, tuple[Node, ...]]] = []
    for count in range(1, min(len(terms), MOST_TERMS)):
        for chosen in combinations(terms, count):
            rest = node.value - sum(term.value for term in chosen)
            if rest > 0 and value > 0:
                off = max(rest / value, value / rest)
                if off <= within:
                    found.append((off, chosen))
    least = min((off for off, _ in found), default=0.0)
    return [chosen for off, chosen in found if off <= least * AS_NEAR]


def _terms_added(node: Node) -> tuple[Node, ...]:
    return tuple(term for sign, term in node.terms if sign > 0 and term.value)


def _slips(node: Node, path: Path) -> Iterator[Slip]:
    for index, (sign, term) in enumerate(node.terms):
        done = "you left out" if sign > 0 else "you did not subtract"
        yield Slip((*path, index), None, f"{done} {term.label}", term if sign > 0 else None)
        yield from _slips(term, (*path, index))
    for index, (exponent, factor) in enumerate(node.factors):
        if not _is_a_unit(factor):
            done = "multiply" if exponent > 0 else "divide"
            short = f"not {'divided' if exponent < 0 else 'multiplied'} by {factor.label}"
            yield Slip((*path, index), None, f"you did not {done} by {factor.label}", is_a_factor=True, short=short)
        yield from _slips(factor, (*path, index))
    for change in node.changes:
        replaced = change.value()
        if replaced is not None:
            yield Slip(path, replaced, change.says)


def _is_a_unit(factor: Node) -> bool:
    """A power of ten or a number of seconds converts units; a result without a factor of millions nobody believes."""
    if abs(factor.value) >= 1e6 or abs(factor.value) <= 1e-6:
        return True
    typed = factor.label.replace(".", "").isdigit()
    return typed and factor.value in (1.0, 100.0, 1000.0, *map(factor_of, CLOCK))


def _overlap(one: Path, other: Path) -> bool:
    """Whether one place lies inside the other: then the two are one mistake."""
    shorter = min(len(one), len(other))
    return one[:shorter] == other[:shorter]


def _evaluated(node: Node, wrong: Wrong, path: Path) -> float | None:
    """The node's value with what is wrong below it; None where nothing of it is left."""
    if path in wrong:
        return wrong[path]
    if not any(place[: len(path)] == path for place in wrong):
        return node.value
    if node.terms:
        return _sum([(sign, _evaluated(term, wrong, (*path, i))) for i, (sign, term) in enumerate(node.terms)])
    if node.factors:
        return _product([(power, _evaluated(each, wrong, (*path, i))) for i, (power, each) in enumerate(node.factors)])
    return node.value


def _sum(terms: Sequence[tuple[int, float | None]]) -> float | None:
    left = [sign * value for sign, value in terms if value is not None]
    return sum(left) if left else None


def _product(factors: Sequence[tuple[int, float | None]]) -> float | None:
    """None where no factor is left: one is no number anybody multiplied."""
    if all(value is None for _, value in factors):
        return None
    found = 1.0
    for exponent, value in factors:
        if value is None:
            continue
        if exponent < 0 and value == 0:
            return None
        found = found * value if exponent > 0 else found / value
    return found
