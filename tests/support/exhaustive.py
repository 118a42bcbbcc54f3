"""A search that looks at every plan and estimates each: what branch and bound must agree with, and is timed beside."""

from __future__ import annotations

from collections import Counter

from app.theory.planner.asking import SearchRequest, read_search, usable_bytes
from app.theory.planner.estimate import estimate
from app.theory.planner.plans import Plans
from app.theory.planner.search import SearchedPlan


def best_of_all(request: SearchRequest) -> tuple[int, list[tuple[tuple[float, float], SearchedPlan]]]:
    """(how many plans there are, the best `limit` of those that fit with their (seconds, bytes)), equal ones in the
    search's own order. Of one plan each: `distinct` is not looked at."""
    base, space = read_search(request)
    plans, usable = Plans(base, space), usable_bytes(request)
    looked_at, found = 0, []
    for shape in space.shapes(Counter()):
        for order in space.orders(shape.pipeline, space.micro_batches(shape), shape.profile):
            for sharding in space.shardings_of(shape):
                looked_at += 1
                made = estimate(plans.request(shape, order, sharding))
                held, seconds = made.memory.per_rank_bytes.total, made.time.step_seconds
                assert seconds is not None, "a search names a GPU"
                if held <= usable:
                    key = (held, seconds) if request.objective == "memory" else (seconds, held)
                    found.append((key, (shape, order, sharding)))
    return looked_at, sorted(found)[: request.limit]
