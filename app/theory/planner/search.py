"""Which plans of a cluster's GPUs train a model best: all of them, by branch and bound.

Every GPU is used, tensor groups stay inside a node with sequence parallelism, and every plan takes the same global
batch. A shape, or a shape with its schedule, whose floor (`bounds`) is above the worst plan that would be reported is
left out with all below it: nothing it holds could have been reported. So what is reported is what looking at every plan
would report.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from itertools import count
from math import gcd, inf
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field

from app.theory.hardware import GPUS
from app.theory.planner.bounds import (
    LayerFloor,
    MemoryFloor,
    TimeFloor,
    memory_floor,
    order_bytes,
    order_seconds,
    shape_bytes,
    shape_seconds,
    time_floor,
)
from app.theory.planner.engine.memory import stage_memories
from app.theory.planner.engine.timing import pipeline_seconds, step_seconds
from app.theory.planner.estimate import estimate
from app.theory.planner.explaining import next_bottleneck, one_step_away, terms
from app.theory.planner.fields import PlanParallel, PlanTraining
from app.theory.planner.flags import flags_of
from app.theory.planner.plans import UNSHARDED, Plans
from app.theory.planner.ranking import Key, Ranking
from app.theory.planner.requests import Cluster, EstimateRequest, Profile, parse_estimate_request
from app.theory.planner.results import Estimate
from app.theory.planner.space import Axes, Order, Shape, Sharding, Space
from app.theory.presets import PRESETS
from app.theory.records import json_data
from labs.spec import Model, SpecError, Strict, Violation, parse

Objective = Literal["step_seconds", "memory", "cost"]
Distinct = Literal["plan", "layout"]
Found = tuple[Shape, Order, Sharding]
T = TypeVar("T")
MOST_GPUS = 1_000_000
MOST_OPENED = 100_000  # shapes and schedules: ten times what the largest published models take
NOTABLY = 0.99  # of the time of the next smaller plan on the front
USABLE = 0.9  # of a GPU's memory: allocators fragment, and libraries take some
NO_ROOM, SLOWER = (
    "does not fit in the share of the memory that a plan may take",
    "worse than what is reported, by a lower bound",
)


class SearchRequest(Strict):
    """What to search for. `training` is an EstimateRequest's without what is searched; `cluster` has the GPUs.

    A plan may take `memory_share` of a GPU's memory. `axes` narrows or widens what is looked at. `distinct` layout
    reports one plan for each division of the GPUs.
    """

    model: Any
    training: Mapping[str, Any] = Field(default_factory=dict)
    cluster: Cluster
    profile: Profile | None = None
    axes: Axes = Axes()
    objective: Objective = "step_seconds"
    distinct: Distinct = "plan"
    memory_share: Annotated[float, Field(gt=0, le=1)] = USABLE
    limit: Annotated[int, Field(ge=1, le=100)] = 10


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
    fits, and `front` the smallest of them and then whatever is faster than all smaller ones by one per cent or more."""

    best: tuple[Candidate, ...]
    considered: int
    decided: int
    pruned: int
    evaluated: int
    rejected: Mapping[str, int]
    seen: tuple[Key, ...]
    front: tuple[Candidate, ...]

    def to_json(self, limit: int | None = None) -> dict[str, object]:
        """As JSON data, with the first `limit` candidates or all."""
        return {
            "considered": self.considered,
            "decided": self.decided,
            "pruned": self.pruned,
            "evaluated": self.evaluated,
            "best": [candidate.to_json() for candidate in self.best[:limit]],
            "rejected": dict(self.rejected),
            "explanation": self.explanation(),
        }

    def explanation(self) -> dict[str, Any] | None:
        """Of the best plan: why it beats the runner-up, what costs it most, the memory it leaves, and what one step on
        each axis would do. None where nothing fits."""
        if not self.best:
            return None
        best, capacity = self.best[0], self.best[0].estimate.memory.capacity_bytes or 0.0
        beside = [json_data(term) for term in terms(best.estimate, self.best[1].estimate)] if self.best[1:] else []
        return {
            "beats_runner_up": beside,
            "next_bottleneck": next_bottleneck(best.estimate),
            "memory_left_bytes": capacity - best.memory_bytes,
            "one_step_away": [step.to_json() for step in one_step_away(best.request)],
        }


def parse_search_request(data: object) -> SearchRequest:
    """A request from untrusted data. Raises SpecError naming every violated field."""
    request = parse(SearchRequest, data, _check)
    _read(request)
    return request


def search(request: SearchRequest) -> SearchResult:
    """The best plans by the objective; of equal ones that with less memory, or less time, and then the simpler."""
    return _Search(request).run()


@dataclass(frozen=True)
class _Node:
    """Plans that are all `floor` or worse: those of a shape, with an `order` those of a shape and its schedule, and if
    `exact` those of them that gather weights for every micro-batch, or those that do not."""

    floor: Key
    shape: Shape
    order: Order | None = None
    gathers: bool = False
    exact: bool = False


def notably_faster(smallest_first: Iterable[T], seconds_of: Callable[[T], float]) -> list[T]:
    """A front of time and memory: of plans by their memory, the smallest, and then whatever is faster than everything
    smaller by one per cent or more."""
    kept: list[T] = []
    fastest = inf
    for each in smallest_first:
        if seconds_of(each) < NOTABLY * fastest:
            kept.append(each)
            fastest = seconds_of(each)
    return kept


class _Search:
    def __init__(self, request: SearchRequest) -> None:
        self.request = request
        base, self.space = read_search(request)
        self.plans = Plans(base, self.space)
        self.usable = usable_bytes(request)
        self.rejected: Counter[str] = Counter()
        self.evaluated = self.no_room = 0
        self.ranking: Ranking[Found] = Ranking(request.limit)
        self.seen: list[tuple[Key, Found]] = []
        self._memories: dict[Shape, MemoryFloor] = {}
        self._times: dict[Shape, TimeFloor] = {}
        self._dense: dict[Shape, LayerFloor] = {}

    def run(self) -> SearchResult:
        """Best floor first: when the best that is left cannot be reported, nothing that is left can."""
        turn = count()  # nodes of one floor are taken in the order they came
        heap = [(node.floor, next(turn), node) for node in self._shapes()]
        decided = sum(self.rejected.values()) - self.rejected[NO_ROOM]
        heapify(heap)
        opened = 0
        while heap:
            opened += 1
            if opened > MOST_OPENED:
                raise SpecError([_too_many(self.request)])
            _, _, node = heappop(heap)
            if not self.ranking.may_take(node.floor, self._group(node.shape)):
                self.rejected[SLOWER] += self._plans_of(node)
            elif node.exact:
                self._evaluate(node)
            else:
                for each in self._refined(node) if node.order else self._orders(node):
                    heappush(heap, (each.floor, next(turn), each))
        pruned = sum(self.rejected.values()) - decided
        self.rejected[NO_ROOM] += self.no_room
        best = tuple(self._candidate(found) for found in self.ranking.items())
        considered = decided + pruned + self.evaluated
        seen = tuple(figures for figures, _ in self.seen)
        return SearchResult(best, considered, decided, pruned, self.evaluated, dict(self.rejected), seen, self._front())

    def _front(self) -> tuple[Candidate, ...]:
        """The front of what was seen."""
        smallest_first = sorted(self.seen, key=lambda each: (each[0][1], each[0][0], each[1]))
        return tuple(self._candidate(found) for _, found in notably_faster(smallest_first, lambda each: each[0][0]))

    def _shapes(self) -> Iterator[_Node]:
        for shape in self.space.shapes(self.rejected):
            memory, zero = self._memory(shape), max(self.space.zeros_of(shape))
            held = shape_bytes(memory, shape.data * shape.context, shape.pipeline, zero)
            if held > self.usable:
                self.rejected[NO_ROOM] += self.space.plans_below(shape)
                continue
            seconds = shape_seconds(self._time(shape), shape.pipeline, self.space.micro_batches(shape))
            yield _Node(self._key(seconds, held), shape)

    def _memory(self, shape: Shape) -> MemoryFloor:
        key = _layer_of(shape)
        if key not in self._memories:
            self._memories[key] = memory_floor(self.plans.at_best(shape))
        return self._memories[key]

    def _time(self, shape: Shape) -> TimeFloor:
        key = _layer_of(shape)
        if key not in self._times:
            alone = key._replace(data=1, expert=1, expert_nodes=0, expert_tensor=0)
            found = time_floor(self._memory(shape).plan, self._dense.get(alone))
            self._times[key] = found
            if found.dense is not None:
                self._dense[alone] = found.dense
        return self._times[key]

    def _orders(self, node: _Node) -> Iterator[_Node]:
        """A shape's schedules, each with a floor of its own."""
        shape, m = node.shape, self.space.micro_batches(node.shape)
        replicas, zero = shape.data * shape.context, max(self.space.zeros_of(shape))
        memory, time = self._memory(shape), self._time(shape)
        for order in self.space.orders(shape.pipeline, m):
            held = max(self._key(*node.floor)[1], order_bytes(memory, replicas, shape.pipeline, zero, m, order))
            each = _Node(self._key(order_seconds(time, self.space.model, shape.pipeline, m, order), held), shape, order)
            if held <= self.usable:
                yield each
            else:
                self.rejected[NO_ROOM] += self._plans_of(each)

    def _refined(self, node: _Node) -> Iterator[_Node]:
        """The time of a schedule's pipeline and the least its first stage can hold, for plans that gather weights once
        a step and those that do for every micro-batch."""
        shape, order = node.shape, node.order
        assert order is not None
        for gathers in (False, True):
            each = replace(node, gathers=gathers, exact=True)
            if not self._shardings(each):
                continue
            leanest = (self.plans.plan(shape, order, sharding) for sharding in self.plans.leanest(shape, gathers))
            held = min(stage_memories(plan, plan.stages[:1])[0].total for plan in leanest)
            if held > self.usable:
                self.rejected[NO_ROOM] += self._plans_of(each)
                continue
            busy, idle = pipeline_seconds(self.plans.plan(shape, order, UNSHARDED))
            # What is gathered on the way lengthens every stage, but may shorten the waits between them.
            yield replace(each, floor=self._key(busy if gathers else busy + idle, held))

    def _evaluate(self, node: _Node) -> None:
        assert node.order is not None
        for sharding in self._shardings(node):
            plan = self.plans.plan(node.shape, node.order, sharding)
            if stage_memories(plan, plan.stages[:1])[0].total > self.usable:
                self.rejected[NO_ROOM] += 1
                continue
            self.evaluated += 1
            memories = stage_memories(plan)
            held = max(memory.total for memory in memories)
            if held > self.usable:
                self.no_room += 1
                continue
            found = (node.shape, node.order, sharding)
            seconds = step_seconds(plan, memories).step
            self.seen.append(((seconds, held), found))
            self.ranking.add(self._key(seconds, held), found, self._group(*found))

    def _shardings(self, node: _Node) -> tuple[Sharding, ...]:
        return self.space.shardings_of(node.shape, node.gathers if node.exact else None)

    def _plans_of(self, node: _Node) -> int:
        return len(self._shardings(node)) if node.order else self.space.plans_below(node.shape)

    def _key(self, seconds: float, held: float) -> Key:
        return (held, seconds) if self.request.objective == "memory" else (seconds, held)

    def _group(self, shape: Shape, *rest: Hashable) -> Hashable:
        if self.request.distinct == "layout":
            return shape.pipeline, shape.tensor, shape.context, shape.expert
        return (shape, *rest)

    def _candidate(self, found: Found) -> Candidate:
        request = self.plans.request(*found)
        return Candidate(request, estimate(request))


def _too_many(request: SearchRequest) -> Violation:
    message = f"{_gpus(request.cluster):,} GPUs can be used in more ways than can be told apart in a few seconds."
    return Violation("axes", None, message, "fewer values of tensor, pipeline, virtual_stages or micro_batch")


def _layer_of(shape: Shape) -> Shape:
    """What a layer costs does not depend on how many stages and replicas there are."""
    cut = shape.expert_tensor or shape.tensor
    return shape._replace(pipeline=1, data=shape.expert * cut // gcd(shape.expert * cut, shape.tensor))


def usable_bytes(request: SearchRequest) -> float:
    """What a plan may take of a GPU's memory."""
    cluster = request.cluster
    return request.memory_share * (cluster.memory_bytes or GPUS[cluster.gpu or ""].capacity_bytes)


def _gpus(cluster: Cluster) -> int:
    return (cluster.nodes or 1) * cluster.gpus_per_node


def read_search(request: SearchRequest) -> tuple[EstimateRequest, Space]:
    """(the request without what is searched, what is searched). Raises SpecError."""
    base = _read(request)
    return base, _space(request, base)


def _read(request: SearchRequest) -> EstimateRequest:
    training = {name: value for name, value in request.training.items() if name != "global_batch"}
    cluster = request.cluster.model_dump(exclude_none=True)
    data = {"model": request.model, "training": training, "parallel": {"data": _gpus(request.cluster)}}
    read = parse_estimate_request({**data, "cluster": cluster, "profile": request.profile})
    batch = {"global_batch": request.training["global_batch"]}  # whether it shares out is for the search to see
    return read.model_copy(update={"training": read.training.model_copy(update=batch)})


def _space(request: SearchRequest, base: EstimateRequest) -> Space:
    assert isinstance(base.model, Model), "the request was checked"
    assert base.training.global_batch is not None, "the request was checked"
    return Space(
        base.model,
        base.training.sequence,
        base.training.global_batch,
        base.training.attention,
        base.training.precision,
        _gpus(request.cluster),
        request.cluster.gpus_per_node,
        request.axes,
        request.profile,
        request.axes.expert_nodes or _routed_nodes(request.model),
    )


def _routed_nodes(model: object) -> tuple[int, ...]:
    """Over how many nodes a published model's router spreads a token; 0: any number."""
    preset = PRESETS.get(model) if isinstance(model, str) else None
    return (preset.expert_nodes or 0,) if preset else (0,)


def _check(request: SearchRequest) -> list[Violation]:
    found = []
    if request.cluster.gpu is None:
        found.append(Violation("cluster.gpu", None, "Without a GPU nothing can be timed.", "the name of a GPU"))
    if _gpus(request.cluster) > MOST_GPUS:
        accepted = f"up to {MOST_GPUS:,} GPUs"
        found.append(Violation("cluster.nodes", request.cluster.nodes, "There are too many to search.", accepted))
    if isinstance(request.model, Mapping) and "parameters" in request.model:
        found.append(Violation("model", request.model, "Of a size alone nothing can be timed.", "a name or a shape"))
    for name in ("global_batch", "sequence"):
        value = request.training.get(name)
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            message = "Configurations are compared at the same batch and sequence."
            found.append(Violation(f"training.{name}", value, message, "a whole number from 1 on"))
    for name in ("micro_batch", "recompute"):
        if name in request.training:
            message = f"This is what is searched; axes.{name} narrows it."
            found.append(Violation(f"training.{name}", request.training[name], message, "nothing"))
    return found
