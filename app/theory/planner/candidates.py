"""What a search reports: the plans it found, how many it looked at, and why the best of them is the best."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Any, TypeVar

from app.theory.planner.explaining import next_bottleneck, one_step_away, terms
from app.theory.planner.fields import PlanParallel, PlanTraining
from app.theory.planner.flags import flags_of
from app.theory.planner.limiting import left_out
from app.theory.planner.ranking import Key
from app.theory.planner.requests import EstimateRequest
from app.theory.planner.results import Estimate
from app.theory.planner.space import Order, Shape, Sharding, Space
from app.theory.planner.ties import is_tie, tie_share
from app.theory.records import json_data

T = TypeVar("T")
SearchedPlan = tuple[Shape, Order, Sharding]
NOTABLY = 0.99  # of the time of the next smaller plan on the front


@dataclass(frozen=True)
class Candidate:
    """A configuration that fits: the request it is, and its Estimate."""

    request: EstimateRequest
    estimate: Estimate

    @property
    def parallel(self) -> PlanParallel:
        return self.request.parallel

    @property
    def training(self) -> PlanTraining:
        return self.request.training

    @property
    def step_seconds(self) -> float:
        assert self.estimate.time.step_seconds is not None, "a search names a GPU"
        return self.estimate.time.step_seconds

    @property
    def memory_bytes(self) -> float:
        return self.estimate.memory.per_rank_bytes.total

    def to_json(self) -> dict[str, object]:
        """The fields that were asked for or chosen, without those left as they are by default."""
        return {
            "parallel": self.parallel.model_dump(exclude_unset=True),
            "training": self.training.model_dump(exclude_unset=True),
            "profile": self.request.profile,
            "flags": [json_data(flags) for flags in flags_of(self.request)],
            "estimate": self.estimate.to_json(),
        }


@dataclass(frozen=True)
class SearchResult:
    """The best candidates, best first. `considered` is `decided` by a rule, `pruned` by a bound, or `evaluated`;
    `rejected` counts those not reported by reason. `seen` has (seconds, bytes) of every plan that was estimated and
    fits, by the plan, and `front` the smallest of them and then whatever is faster than all smaller ones by one per
    cent or more."""

    best: tuple[Candidate, ...]
    considered: int
    decided: int
    pruned: int
    evaluated: int
    rejected: Mapping[str, int]
    seen: Mapping[SearchedPlan, Key]
    front: tuple[Candidate, ...]
    space: Space

    @cached_property
    def left_out(self) -> Mapping[str, int]:
        """How many plans that would have been looked at each limit took out, by its field: none of `considered`."""
        return left_out(self.space)

    @property
    def tied(self) -> tuple[Candidate, ...]:
        """The best, and those too close to it in time to say which is faster."""
        return tuple(each for each in self.best if is_tie(self.best[0].step_seconds, each.step_seconds))

    def to_json(self, limit: int | None = None) -> dict[str, object]:
        """As JSON data, with the first `limit` candidates or all."""
        return {
            "considered": self.considered,
            "decided": self.decided,
            "pruned": self.pruned,
            "evaluated": self.evaluated,
            "best": [candidate.to_json() for candidate in self.best[:limit]],
            "rejected": dict(self.rejected),
            "left_out_by_limits": dict(self.left_out),
            "explanation": self.explanation(),
        }

    def explanation(self) -> dict[str, Any] | None:
        """Of the best plan: whether others are a tie with it, why it beats the runner-up, what costs it most, the
        memory it leaves, and what one step on each axis would do. None where nothing fits."""
        if not self.best:
            return None
        best, capacity = self.best[0], self.best[0].estimate.memory.capacity_bytes or 0.0
        beside = [json_data(term) for term in terms(best.estimate, self.best[1].estimate)] if self.best[1:] else []
        return {
            "tie": len(self.tied) > 1,
            "tie_share": tie_share(),
            "beats_runner_up": beside,
            "next_bottleneck": next_bottleneck(best.estimate),
            "memory_left_bytes": capacity - best.memory_bytes,
            "one_step_away": [step.to_json() for step in one_step_away(best.request)],
        }


def notably_faster(smallest_first: Iterable[T], seconds_of: Callable[[T], float]) -> list[T]:
    """A front of time and memory: of plans by their memory, the smallest, then whatever is faster than everything
    smaller by one per cent or more, and last the fastest of all, by how little it may be."""
    kept: list[T] = []
    notable = fastest = inf
    last: T | None = None
    for each in smallest_first:
        seconds = seconds_of(each)
        if seconds < NOTABLY * notable:
            kept.append(each)
            notable = seconds
        if seconds < fastest:
            last, fastest = each, seconds
    return kept if last is None or fastest == notable else [*kept, last]
