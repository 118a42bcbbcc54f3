"""When two plans are a tie: the one rule.

An estimate is further off from a measurement than the difference of two estimates is from that of two measurements:
what the engine does not know of a machine is in both. So the published rows are taken in pairs, two plans of one model
in one table of one publication, and it is asked how far apart the engine's errors on the two are. Half of the pairs are
off by no more than `tie_share`, in the ratio of their times. Two steps that are predicted closer than that are a tie:
as errors of pairs go one way as often as the other, the slower is really the faster in one case of four or more.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from itertools import combinations
from math import log
from statistics import median

from app.theory.planner.evidence import evidence
from app.theory.planner.requests import EstimateRequest

AXES = ("tensor", "pipeline", "context", "expert")


@cache
def tie_share() -> float:
    """The share of a step's time by which half of the pairs of published plans are off between them."""
    return median(_pairs())


@cache
def tie_pairs() -> int:
    """How many pairs that is the middle of."""
    return len(_pairs())


def _pairs() -> list[float]:
    alike: dict[tuple[str, str, float], list[float]] = defaultdict(list)
    for row in evidence():
        if row.is_time:
            _, parameters, _ = row.features.sizes
            alike[row.publication, row.table, parameters].append(row.error)
    return [abs(one - other) for errors in alike.values() for one, other in combinations(errors, 2)]


def is_tie(seconds: float, other: float) -> bool:
    """Whether the times of two plans of one model are too close to say which is shorter."""
    return abs(log(seconds / other)) < tie_share()


def choices_of(request: EstimateRequest) -> tuple[int, int]:
    """How much there is to set up in a plan: first the axes besides data, for each changes the program or the layout
    of ranks, then the settings of each: chunks, sharding, and what is recomputed by module."""
    parallel, training = request.parallel, request.training
    axes = sum(getattr(parallel, axis) > 1 for axis in AXES)
    settings = (
        parallel.virtual_stages > 1,
        parallel.zero > 0,
        parallel.shard is not None,
        parallel.reshard_after_forward is not None,
        training.recompute != "none",
        training.recompute_modules is not None,
    )
    return axes, sum(settings)
