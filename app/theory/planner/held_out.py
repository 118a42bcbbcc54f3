"""How often intervals hold that were set without the publication they are tried on.

`NEAREST` and `WIDENING` were chosen with every publication in sight, so that their own coverage says less than it
seems to. Here each publication is left out of that choice too: by the same rule on all others, of a few values.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import product
from math import log
from typing import NamedTuple

from app.theory.planner.intervals import LEAST, SHARE, Coverage, Evidence, at_share, distance, row_weight

CHOICES = tuple(product((8, 12, 20, 30), (0.25, 0.5, 1.0)))  # rows, and widening for each unit of distance
Setting = tuple[int, float]


class _Seen(NamedTuple):
    """A row, and those of other publications by how far they are."""

    row: Evidence
    others: tuple[tuple[float, Evidence], ...]

    def width(self, setting: Setting, without: str) -> float:
        nearest, widening = setting
        near = [pair for pair in self.others if pair[1].publication != without][:nearest]
        counts = Counter(row.publication for _, row in near)
        weighed = sorted((abs(row.error), row_weight(far, counts[row.publication])) for far, row in near)
        return max(LEAST, at_share(weighed)) * (1.0 + widening * near[0][0])


def blind_coverage(rows: Iterable[Evidence]) -> Coverage:
    """Of rows of speed of three publications or more: each by the setting chosen without its publication."""
    known = [row for row in rows if row.is_time]
    seen = [_Seen(row, _others(row, known)) for row in known]
    held: dict[str, list[bool]] = defaultdict(list)
    for publication in sorted({row.publication for row in known}):
        rest = [each for each in seen if each.row.publication != publication]
        setting = min(CHOICES, key=lambda choice: _merit(rest, choice, publication))
        for each in seen:
            if each.row.publication == publication:
                held[publication].append(abs(each.row.error) <= each.width(setting, publication))
    means = [sum(each) / len(each) for each in held.values()]
    return Coverage(len(known), sum(map(sum, held.values())) / len(known), sum(means) / len(means))


def _others(row: Evidence, rows: list[Evidence]) -> tuple[tuple[float, Evidence], ...]:
    apart = ((distance(row.features, each.features), each) for each in rows if each.publication != row.publication)
    return tuple(sorted(apart, key=lambda pair: pair[0]))


def _merit(seen: list[_Seen], setting: Setting, without: str) -> tuple[float, float]:
    """Least is best: what coverage lacks, of rows or of publications, and then how wide the intervals are."""
    held: dict[str, list[bool]] = defaultdict(list)
    widths = [each.width(setting, without) for each in seen]
    for each, width in zip(seen, widths, strict=True):
        held[each.row.publication].append(abs(each.row.error) <= width)
    of_rows = sum(map(sum, held.values())) / len(seen)
    of_publications = sum(sum(each) / len(each) for each in held.values()) / len(held)
    return max(0.0, SHARE - of_rows, SHARE - of_publications), sum(map(log, widths))
