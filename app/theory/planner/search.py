"""Which plans of a cluster's GPUs train a model best: all of them, by branch and bound.

Every GPU is used, tensor groups stay inside a node with sequence parallelism, and every plan takes the same global
batch. A shape, or a shape with its schedule, whose floor (`bounds`) is above the worst plan that would be reported is
left out with all below it: nothing it holds could have been reported. So what is reported is what looking at every plan
would report.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from itertools import count
from math import gcd

from app.theory.planner.asking import SearchRequest, gpus_of, read_search, usable_bytes
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
from app.theory.planner.candidates import Candidate, SearchedPlan, SearchResult, notably_faster
from app.theory.planner.engine.memory import stage_memories
from app.theory.planner.engine.timing import pipeline_seconds, step_seconds
from app.theory.planner.estimate import estimate
from app.theory.planner.plans import UNSHARDED, Plans
from app.theory.planner.ranking import Key, Ranking
from app.theory.planner.space import Order, Shape, Sharding
from labs.spec import SpecError, Violation

MOST_OPENED = 100_000  # shapes and schedules: ten times what the largest published models take
NO_ROOM, SLOWER = (
    "does not fit in the share of the memory that a plan may take",
    "worse than what is reported, by a lower bound",
)


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


class _Search:
    def __init__(self, request: SearchRequest) -> None:
        self.request = request
        base, self.space = read_search(request)
        self.plans = Plans(base, self.space)
        self.usable = usable_bytes(request)
        self.rejected: Counter[str] = Counter()
        self.evaluated = self.no_room = 0
        self.ranking: Ranking[SearchedPlan] = Ranking(request.limit)
        self.seen: dict[SearchedPlan, Key] = {}
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
        counts = (considered, decided, pruned, self.evaluated, dict(self.rejected))
        return SearchResult(best, *counts, self.seen, self._front(), self.space)

    def _front(self) -> tuple[Candidate, ...]:
        """The front of what was seen."""
        smallest_first = sorted((held, seconds, found) for found, (seconds, held) in self.seen.items())
        return tuple(self._candidate(found) for _, _, found in notably_faster(smallest_first, lambda each: each[1]))

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
        for order in self.space.orders(shape.pipeline, m, shape.profile):
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
            self.seen[found] = seconds, held
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

    def _candidate(self, plan: SearchedPlan) -> Candidate:
        request = self.plans.request(*plan)
        return Candidate(request, estimate(request))


def _too_many(request: SearchRequest) -> Violation:
    message = f"{gpus_of(request.cluster):,} GPUs can be used in more ways than can be told apart in a few seconds."
    return Violation("axes", None, message, "fewer values of tensor, pipeline, virtual_stages or micro_batch")


def _layer_of(shape: Shape) -> Shape:
    """What a layer costs does not depend on how many stages and replicas there are."""
    cut = shape.expert_tensor or shape.tensor
    return shape._replace(pipeline=1, data=shape.expert * cut // gcd(shape.expert * cut, shape.tensor))
