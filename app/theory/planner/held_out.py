"""How often intervals hold that were set without the publication they are tried on.

`WIDENING` was chosen with every publication in sight, so that its own coverage says less than it seems to. Here each
publication is left out of that choice too: by the same rule on all others, of a few values.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from math import log
from typing import NamedTuple

from app.theory.planner.intervals import SHARE, Coverage, Evidence, distance, width_of

CHOICES = (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.5, 1.0)  # widening for each unit of distance


class _Seen(NamedTuple):
    """A row, and those of other publications by how far they are."""

    row: Evidence
    others: tuple[tuple[float, Evidence], ...]

    def width(self, widening: float, without: str) -> float:
        return width_of([pair for pair in self.others if pair[1].publication != without], widening)


def blind_coverage(rows: Iterable[Evidence]) -> Coverage:
    """Of rows of speed of three publications or more: each by the setting chosen without its publication."""
    known = [row for row in rows if row.is_time]
    seen = [_Seen(row, _others(row, known)) for row in known]
    held: dict[str, list[bool]] = defaultdict(list)
    for publication in sorted({row.publication for row in known}):
        rest = [each for each in seen if each.row.publication != publication]
        widening = min(CHOICES, key=lambda choice: _merit(rest, choice, publication))
        for each in seen:
            if each.row.publication == publication:
                held[publication].append(abs(each.row.error) <= each.width(widening, publication))
    means = [sum(each) / len(each) for each in held.values()]
    return Coverage(len(known), sum(map(sum, held.values())) / len(known), sum(means) / len(means))


def _others(row: Evidence, rows: list[Evidence]) -> tuple[tuple[float, Evidence], ...]:
    return tuple((distance(row.features, each.features), each) for each in rows if each.publication != row.publication)


def _merit(seen: list[_Seen], widening: float, without: str) -> tuple[float, float]:
    """Least is best: what coverage lacks, of rows or of publications, and then how wide the intervals are."""
    held: dict[str, list[bool]] = defaultdict(list)
    widths = [each.width(widening, without) for each in seen]
    for each, width in zip(seen, widths, strict=True):
        held[each.row.publication].append(abs(each.row.error) <= width)
    of_rows = sum(map(sum, held.values())) / len(seen)
    of_publications = sum(sum(each) / len(each) for each in held.values()) / len(held)
    return max(0.0, SHARE - of_rows, SHARE - of_publications), sum(map(log, widths))
