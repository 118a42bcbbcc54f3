"""Where every concept stands on the one map of all, and how its lines run: what is needed lies to the left. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.content.concept_map import columns, direct_needs
from app.content.schemas import Concept

MOST_ROWS = 11  # concepts in a column; more come in the next one, where nothing needs them sooner
WIDTH, WIDE = 8.8, 100.0  # of a concept and of the map, in percent
ROW, BAR = 48, 34  # px: from one row to the next, and from a row's top to the bar under its name
_PASSING, _LANE, _LANES = 9, 3, 3  # px below a bar where lines pass, between two, and how many lie beside each other
_SWEEPS = 6  # through the columns, until those that belong together stand at one height


@dataclass(frozen=True)
class Place:
    """A concept on the map: its column, and the row in it."""

    concept: Concept
    column: int
    row: int
    x: float

    @property
    def top(self) -> int:
        return self.row * ROW


@dataclass(frozen=True)
class Line:
    """From what is needed to what needs it, as an SVG path: x in tenths of a percent, y in px. `passing` are the pieces
    of it below ideas that it only passes, which it must not seem to underline; empty where it passes none."""

    need: str
    concept: str
    path: str
    passing: str


@dataclass(frozen=True)
class Chart:
    """The map: the concepts of each column from the top, and the lines between them."""

    columns: Sequence[Sequence[Place]]
    lines: Sequence[Line]
    height: int

    @property
    def places(self) -> dict[str, Place]:
        """Each concept's."""
        return {place.concept.id: place for column in self.columns for place in column}


def draw(concepts: Mapping[str, Concept]) -> Chart:
    """Everything on one map. What another need rests on has no line of its own."""
    needs = direct_needs(concepts)
    order = columns(concepts, MOST_ROWS)
    rows = _rows([[each.id for each in column] for column in order], needs)
    step = (WIDE - WIDTH) / max(1, len(order) - 1)
    found = [
        sorted((Place(each, at, rows[each.id], at * step) for each in column), key=lambda place: place.row)
        for at, column in enumerate(order)
    ]
    places = {place.concept.id: place for column in found for place in column}
    router = _Router(places, step)
    lines = [
        Line(need, concept, *router.paths(places[need], places[concept]))
        for concept in places
        for need in needs[concept]
    ]
    return Chart(found, lines, (max(rows.values(), default=0) + 1) * ROW)


def _rows(order: Sequence[Sequence[str]], needs: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """A row for each: as near as its column allows to the middle of what it needs and of what needs it."""
    near: dict[str, list[str]] = {each: [*needs[each]] for column in order for each in column}
    for concept, of in needs.items():
        for need in of:
            near[need].append(concept)
    height = max(map(len, order), default=0)
    rows = {each: (height - len(column)) // 2 + at for column in order for at, each in enumerate(column)}
    for sweep in range(_SWEEPS):
        for column in order if sweep % 2 == 0 else order[::-1]:
            wished = {
                each: sum(rows[other] for other in near[each]) / len(near[each]) if near[each] else rows[each]
                for each in column
            }
            ordered = sorted(column, key=lambda each: (wished[each], rows[each]))
            rows |= dict(zip(ordered, _spread([wished[each] for each in ordered], height), strict=True))
    return rows


def _spread(wished: Sequence[float], height: int) -> list[int]:
    """Rows in this order, none twice, together nearest to what is wished."""
    best: list[tuple[float, list[int]]] = [(0.0, [])] * (height + 1)  # of the first rows, without any yet
    for wish in wished:
        following: list[tuple[float, list[int]]] = [(float("inf"), [])]
        for row in range(height):
            cost, taken = best[row]
            here = (cost + (row - wish) ** 2, [*taken, row])
            following.append(min(following[-1], here, key=lambda each: each[0]))
        best = following
    return best[height][1]


class _Router:
    """Lines between columns are curves; past a column in between they run below a bar, beside each other."""

    def __init__(self, places: Mapping[str, Place], step: float) -> None:
        self.step = step
        self.taken: dict[tuple[int, int], list[str]] = {}
        self.filled = {(place.column, place.row) for place in places.values()}

    def paths(self, need: Place, concept: Place) -> tuple[str, str]:
        """From the end of one bar to the beginning of the other: between columns, and below what stands in one."""
        start, end = need.top + BAR, concept.top + BAR
        found, below, x, y = list[str](), list[str](), need.x + WIDTH, start
        found.append(f"M{_tenths(x)} {y}")
        for column in range(need.column + 1, concept.column):
            share = (column - need.column) / (concept.column - need.column)
            passing = self._passing(need, column, start + (end - start) * share)
            left = column * self.step
            found.append(_curve(x, y, left, passing))
            piece = f"M{_tenths(left)} {passing}H{_tenths(left + WIDTH)}"
            is_below = (column, (passing - BAR) // ROW) in self.filled
            (below if is_below else found).append(piece)
            found.append(f"M{_tenths(left + WIDTH)} {passing}")
            x, y = left + WIDTH, passing
        found.append(_curve(x, y, concept.x, end))
        return "".join(found), "".join(below)

    def _passing(self, need: Place, column: int, wished: float) -> int:
        """The height at which a line passes a column: below a bar, or where nothing stands."""
        row = max(-1, min(MOST_ROWS - 1, round((wished - BAR - _PASSING) / ROW)))
        lanes = self.taken.setdefault((column, row), [])
        if need.concept.id not in lanes:
            lanes.append(need.concept.id)
        lane = lanes.index(need.concept.id) % _LANES
        return row * ROW + BAR + _PASSING + lane * _LANE


def _curve(x0: float, y0: float, x1: float, y1: float) -> str:
    middle = _tenths((x0 + x1) / 2)
    return f"C{middle} {y0} {middle} {y1} {_tenths(x1)} {y1}"


def _tenths(percent: float) -> str:
    return f"{10 * percent:.1f}"
