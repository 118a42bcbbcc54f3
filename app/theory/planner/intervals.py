"""How sure an estimate is: how far the engine was from published measurements, those nearest to the plan first of all.

Errors are those of constants that never saw the row's publication. All rows count, near ones more, and all those of a
publication together as much as another's: what is asked is how far off the next publication would be. The width grows
where even the nearest is far. `WIDENING` was set so that four of five intervals hold on publications left out, of all
rows and on the mean of the publications (`coverage`): with every publication in sight, so `held_out` chooses it again
without the one that is tried.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from math import exp, log2
from operator import ne

from app.theory.hardware import GPUS
from app.theory.planner.engine.casting import CASTS
from app.theory.planner.engine.plan import Plan

SHARE = 0.8  # of intervals that should hold
WIDENING = 0.1  # of the width for each unit of distance
LEAST = 0.02  # of the value: no source prints its rows more precisely
OCTAVES = 6.0  # a ratio of 2^6 is as far as a word that differs
FAMILIES = {"torchtitan": "fsdp2", "zero-paper": "megatron"}  # alike in what rows can tell


@dataclass(frozen=True)
class Features:
    """What makes two plans alike. `words` differ or not: implementation, GPU generation, precision, recomputation,
    attention, whether compiled, and which axes are used; `sizes` are log2 of sequence, parameters and GPUs."""

    words: tuple[str, ...]
    sizes: tuple[float, float, float]


@dataclass(frozen=True)
class Evidence:
    """A measured value of a published row; `error` is the natural logarithm of predicted over measured."""

    publication: str
    table: str
    is_time: bool
    features: Features
    error: float


def features_of(plan: Plan, gpu: str, parameters: float) -> Features:
    """Of a plan on a GPU."""
    parallel, training = plan.parallel, plan.training
    used = {
        "tensor": parallel.tensor > 1,
        "pipeline": parallel.pipeline > 1,
        "context": parallel.context > 1,
        "experts": plan.model.experts > 1,
        "sharded weights": parallel.zero == 3,
        "compiled": training.compile,
    }
    words = (
        FAMILIES.get(plan.profile_name, plan.profile_name),
        GPUS[gpu].generation,
        "8-bit" if training.precision in CASTS else "16-bit",
        training.recompute,
        training.attention,
        *(name if is_used else "" for name, is_used in used.items()),
    )
    sizes = (training.sequence, parameters, parallel.world_size)
    first, second, third = (round(log2(size), 2) for size in sizes)
    return Features(words, (first, second, third))


def distance(one: Features, other: Features) -> float:
    """Words that differ, and ratios in units of 2^6."""
    (a, b, c), (d, e, f) = one.sizes, other.sizes
    differ = sum(map(bool, map(ne, one.words, other.words)))
    return differ + (abs(a - d) + abs(b - e) + abs(c - f)) / OCTAVES


@dataclass(frozen=True)
class Spread:
    """The natural logarithm by which four of five measurements differ at most, either way, by `rows` published."""

    width: float
    rows: int

    def around(self, value: float) -> tuple[float, float]:
        """The interval around an estimate."""
        return value * exp(-self.width), value * exp(self.width)


def spread(features: Features, rows: Iterable[Evidence]) -> Spread | None:
    """From `rows`; None without any."""
    known = [(distance(features, row.features), row) for row in rows]
    return Spread(width_of(known, WIDENING), len(known)) if known else None


def width_of(rows: list[tuple[float, Evidence]], widening: float) -> float:
    """From (distance, row) of every row that is known."""
    of_publication = Counter(row.publication for _, row in rows)
    weighed = sorted((abs(row.error), row_weight(far, of_publication[row.publication])) for far, row in rows)
    return max(LEAST, at_share(weighed)) * (1.0 + widening * min(far for far, _ in rows))


def row_weight(far: float, of_publication: int) -> float:
    """What a row at a distance counts, of a publication that has so many: one that printed a hundred is no surer."""
    return float((1.0 + far) ** -2 / of_publication)


def at_share(weighed: list[tuple[float, float]]) -> float:
    """The value below or at which `SHARE` of the weight lies, of (value, weight) in order."""
    left = (SHARE - 1e-9) * sum(weight for _, weight in weighed)
    for value, weight in weighed:
        left -= weight
        if left <= 0:
            return value
    return weighed[-1][0]


def unseen_spread(row: Evidence, rows: Iterable[Evidence]) -> Spread | None:
    """Of a row as if its publication were not known; of memory, which nothing was fitted to, its table."""
    if row.is_time:
        others = [each for each in rows if each.is_time and each.publication != row.publication]
    else:
        others = [each for each in rows if not each.is_time and each.table != row.table]
    return spread(row.features, others)


@dataclass(frozen=True)
class Coverage:
    """How many of `rows` lie inside intervals that never saw their publication: of all, and on publications' mean."""

    rows: int
    of_rows: float
    of_publications: float


def coverage(rows: tuple[Evidence, ...], is_time: bool) -> Coverage:
    """Of all rows of speed, or of memory."""
    held: dict[str, list[bool]] = defaultdict(list)
    for row in rows:
        found = unseen_spread(row, rows) if row.is_time == is_time else None
        if found is not None:
            held[row.publication].append(abs(row.error) <= found.width)
    count = sum(map(len, held.values()))
    means = [sum(each) / len(each) for each in held.values()]
    return Coverage(count, sum(map(sum, held.values())) / count, sum(means) / len(means))
