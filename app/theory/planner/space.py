"""What a search looks through: every way to divide a cluster's GPUs, and every choice that goes with one.

Plans are made in three steps, each of which a bound can end: a shape (how ranks divide the work, and what a layer of it
costs), its order (the pipeline's schedule), and its sharding (ZeRO). Only what runs is made: what breaks a rule, is the
same plan under another name, or provably never better, is counted as decided.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

from app.theory.planner.engine.profiles import PROFILES
from app.theory.planner.fields import Overlap
from app.theory.planner.limits import Axes, Limits
from app.theory.planner.rules import EMPTY_ENDS
from app.theory.planner.software import ALL_STAGES, SOFTWARE, Profile, defaults_of
from app.theory.transformer import expert_width
from labs.spec import SCHEDULE_RULES, Model, Precision, Schedule

MOST_MICRO_BATCH = 32  # sequences
NO_SHARE = "the global batch does not share out"
DIVIDED = "tensor or context parallelism does not divide the model or the sequence"
SAME = "the same as a plan that is looked at, or never better"
GATHERS, KEEPS = "gathers", "keeps"


class Shape(NamedTuple):
    """How ranks divide the work, and what else decides what a layer costs. Ordered from simple to elaborate."""

    pipeline: int
    tensor: int
    context: int
    expert: int
    data: int
    micro_batch: int
    recompute: str  # or the modules that selective recomputation repeats, joined by +
    profile: Profile
    precision: Precision
    overlap: int  # its place in the axis
    expert_nodes: int  # 0: any number
    expert_tensor: int = 0  # 0: as many as the tensor ranks


class Order(NamedTuple):
    """The pipeline's schedule."""

    schedule: Schedule
    virtual_stages: int


class Sharding(NamedTuple):
    """Who keeps the state. `shard` 0 is all replicas. `reshard` is empty where ZeRO-3 gathers as it does by default."""

    zero: int
    shard: int = 0
    reshard: str = ""

    def gathers(self, pipeline: int) -> bool:
        """Whether weights are gathered for every micro-batch."""
        return self.zero == 3 and (self.reshard == GATHERS or (not self.reshard and pipeline == 1))


@dataclass(frozen=True)
class Space:
    """All plans of `gpus` for a model. `tally` counts what is decided while shapes are made, by reason."""

    model: Model
    sequence: int
    global_batch: int
    attention: str
    precision: Precision
    gpus: int
    gpus_per_node: int
    limits: Limits
    profile: Profile | None
    expert_nodes: tuple[int, ...] = (0,)
    any_schedule: bool = False
    keeps_layout: bool = True  # of the state, in every plan; else each as its software does

    @property
    def axes(self) -> Axes:
        return self.limits.axes

    @cached_property
    def overlaps(self) -> tuple[Overlap, ...]:
        return self.axes.overlap or (Overlap(),)

    def shapes(self, tally: Counter[str]) -> Iterator[Shape]:
        """Every shape that breaks no rule, simple ones first."""
        for tensor, context, pipeline, data in self._layouts():
            if reason := self._broken(tensor, context, data):
                tally[reason] += self._plans_of(data, context, pipeline)
                continue
            for micro_batch in self._micro_batches(data):
                for expert, cut in self._experts(data, tensor, context):
                    yield from self._costs(pipeline, tensor, context, expert, data, micro_batch, cut, tally)

    def _layouts(self) -> Iterator[tuple[int, int, int, int]]:
        """(tensor, context, pipeline, data): tensor groups stay inside a node, stages have at least a layer each."""
        among = self.limits.among
        for tensor in among("tensor", divisors(self.gpus)):
            if tensor > self.gpus_per_node or self.gpus_per_node % tensor:
                continue
            for context in among("context", divisors(self.gpus // tensor)):
                if context > self.sequence:
                    continue
                for pipeline in among("pipeline", divisors(self.gpus // tensor // context)):
                    data = self.gpus // tensor // context // pipeline
                    if pipeline <= self.model.layers and not self.limits.excluding("data", data):
                        yield tensor, context, pipeline, data

    def _broken(self, tensor: int, context: int, data: int) -> str:
        model = self.model
        widths = (model.heads, model.ffn_hidden, model.expert_ffn_hidden or tensor)
        if any(width % tensor for width in widths) or self.sequence % (tensor * context):
            return DIVIDED
        return NO_SHARE if self.global_batch % data else ""

    def _plans_of(self, data: int, context: int, pipeline: int) -> int:
        """How many plans a layout would have with micro-batches of one sequence."""
        micro_batches = max(1, self.global_batch // data)
        return sum(
            len(self.orders(pipeline, micro_batches, name)) * len(self.shardings(data, context, pipeline, zeros))
            for name, zeros in self.profiles
        )

    def _micro_batches(self, data: int) -> Sequence[int]:
        each = self.global_batch // data
        return [size for size in self.limits.given("micro_batch", range(1, MOST_MICRO_BATCH + 1)) if each % size == 0]

    def _experts(self, data: int, tensor: int, context: int) -> Iterator[tuple[int, int]]:
        """(expert, expert_tensor, or 0 where experts are cut as the rest is): dealt over data ranks and cut over tensor
        ranks, or whole and dealt over both."""
        if self.model.experts == 1:
            yield 1, 0
            return
        width = expert_width(self.model)
        for cut in self.axes.expert_tensor or ((tensor,) if tensor == 1 or context > 1 else (tensor, 1)):
            if tensor % cut or width % cut:
                continue
            known = [each for each in divisors(data * tensor // cut) if self.model.experts % each == 0]
            # Without expert ranks every rank would hold all of them: what folding is to avoid.
            folded = known if cut == tensor else [each for each in known if each > 1]
            for expert in self.limits.among("expert", folded):
                yield expert, 0 if cut == tensor else cut

    def _costs(
        self,
        pipeline: int,
        tensor: int,
        context: int,
        expert: int,
        data: int,
        micro_batch: int,
        cut: int,
        tally: Counter[str],
    ) -> Iterator[Shape]:
        for profile, zeros in self.profiles:
            if not self._plans_with(pipeline, data, context, micro_batch, profile, zeros):
                continue
            for recompute in self.recomputes(profile):
                if recompute == "selective" and not self._selects(profile):
                    tally[SAME] += self._plans_with(pipeline, data, context, micro_batch, profile, zeros)
                    continue
                for precision in self.axes.precision or (self.precision,):
                    for overlap in range(len(self.overlaps)):
                        for nodes in self.expert_nodes if expert > 1 else (0,):
                            yield Shape(
                                pipeline,
                                tensor,
                                context,
                                expert,
                                data,
                                micro_batch,
                                recompute,
                                profile,
                                precision,
                                overlap,
                                nodes,
                                cut,
                            )

    @cached_property
    def _modules(self) -> tuple[str, ...]:
        """What selective recomputation may repeat where it goes by module: unless listed, what is cheap to repeat."""
        if self.axes.recompute_modules is not None:
            return tuple("+".join(each) for each in self.axes.recompute_modules if each)
        latent = ["mla_up_proj"] if self.model.latent_attention else []
        return ("+".join(["layernorm", *latent, *(["moe_act"] if self.model.experts > 1 else [])]),)

    def recomputes(self, profile: Profile) -> tuple[str, ...]:
        """What is recomputed: nothing, what the implementation selects, chosen modules where it takes them, all."""
        wanted = self.axes.recompute or ("none", "selective", "full")
        by_module = profile == "megatron-core" and "selective" in wanted
        return (*wanted, *(self._modules if by_module or self.axes.recompute_modules else ()))

    def _selects(self, profile: Profile) -> bool:
        """Whether selective recomputation is anything: a fused kernel has no scores to recompute."""
        return PROFILES[profile].selective != "attention" or self.attention != "flash"

    @cached_property
    def profiles(self) -> tuple[tuple[Profile, tuple[int, ...]], ...]:
        """(implementation, its ZeRO stages) to look at: the one asked for, or those that the stages suggest."""
        if self.profile is None:
            return defaults_of(self.axes.zero or ALL_STAGES)
        return ((self.profile, self.axes.zero or SOFTWARE[self.profile].zero),)

    def zeros_of(self, shape: Shape) -> tuple[int, ...]:
        return self._zeros[shape.profile]

    @cached_property
    def _zeros(self) -> Mapping[Profile, tuple[int, ...]]:
        return dict(self.profiles)

    def micro_batches(self, shape: Shape) -> int:
        """Per step and data rank."""
        return self.global_batch // (shape.data * shape.micro_batch)

    def shardings_of(self, shape: Shape, gathers: bool | None = None) -> tuple[Sharding, ...]:
        """Who may keep a shape's state; of those that gather weights for every micro-batch, or that do not."""
        zeros, axes = self.zeros_of(shape), self.axes
        sizes = (shape.data, shape.context, shape.pipeline)
        return _shardings(*sizes, zeros, axes.shard, axes.reshard_after_forward, gathers)

    def plans_below(self, shape: Shape) -> int:
        """How many plans a shape has."""
        zeros = self.zeros_of(shape)
        return self._plans_with(shape.pipeline, shape.data, shape.context, shape.micro_batch, shape.profile, zeros)

    def _plans_with(
        self, pipeline: int, data: int, context: int, micro_batch: int, profile: Profile, zeros: tuple[int, ...]
    ) -> int:
        orders = self.orders(pipeline, self.global_batch // (data * micro_batch), profile)
        return len(orders) * len(self.shardings(data, context, pipeline, zeros))

    def orders(self, pipeline: int, micro_batches: int, profile: Profile) -> tuple[Order, ...]:
        """The schedules that run, simple ones first: those of the implementation, unless others are asked for."""
        limits, most_chunks = self.limits, self.model.layers + EMPTY_ENDS
        found = _orders(pipeline, micro_batches, most_chunks, self.axes.schedule, self.axes.virtual_stages)
        if pipeline > 1:
            found = _within(found, limits.at_least.virtual_stages, limits.at_most.virtual_stages)
        if pipeline == 1 or self.any_schedule or self.axes.schedule is not None:
            return found
        return _run_by(profile, found)

    def shardings(self, data: int, context: int, pipeline: int, zeros: tuple[int, ...]) -> tuple[Sharding, ...]:
        """Who may keep the state, simple ones first."""
        return _shardings(data, context, pipeline, zeros, self.axes.shard, self.axes.reshard_after_forward)


@lru_cache(maxsize=4096)
def _orders(
    pipeline: int,
    micro_batches: int,
    most_chunks: int,
    schedules: tuple[Schedule, ...] | None,
    virtual_stages: tuple[int, ...] | None,
) -> tuple[Order, ...]:
    """GPipe takes as long as 1F1B and holds more, and so does breadth-first beside interleaving where that runs."""
    if pipeline == 1:
        return (Order("1f1b", 1),)
    found = []
    for virtual in range(1, most_chunks // pipeline + 1):
        for name, rule in SCHEDULE_RULES.items():
            if not rule.least_virtual_stages <= virtual <= (rule.most_virtual_stages or virtual):
                continue
            if micro_batches % rule.micro_batches_come_in(pipeline, virtual):
                continue
            if micro_batches < rule.least_micro_batches(pipeline):
                continue
            if schedules is None:
                if name == "gpipe" or (name == "looped-bfs" and (virtual == 1 or micro_batches % pipeline == 0)):
                    continue
            elif name not in schedules:
                continue
            if virtual_stages is None or virtual in virtual_stages:
                found.append(Order(name, virtual))  # type: ignore[arg-type]
    return tuple(found)


@lru_cache(maxsize=4096)
def _within(orders: tuple[Order, ...], least: int | None, most: int | None) -> tuple[Order, ...]:
    return tuple(order for order in orders if (least or 1) <= order.virtual_stages <= (most or order.virtual_stages))


@lru_cache(maxsize=4096)
def _run_by(profile: Profile, orders: tuple[Order, ...]) -> tuple[Order, ...]:
    return tuple(order for order in orders if order.schedule in SOFTWARE[profile].schedules)


@lru_cache(maxsize=4096)
def _shardings(
    data: int,
    context: int,
    pipeline: int,
    zeros: tuple[int, ...],
    shards: tuple[int | None, ...] | None,
    reshards: tuple[bool | None, ...] | None,
    gathers: bool | None = None,
) -> tuple[Sharding, ...]:
    """A shard over one rank is no shard, one over all replicas is the default."""
    if gathers is not None:
        known = _shardings(data, context, pipeline, zeros, shards, reshards)
        return tuple(each for each in known if each.gathers(pipeline) == gathers)
    found = [Sharding(0)] if 0 in zeros else []
    replicas = data * context
    if replicas == 1:
        return tuple(found)
    parts = [each for each in divisors(data) if 1 < each < replicas]
    sizes = [0, *parts]
    if shards is not None:
        whole = (None, replicas)
        sizes = list(dict.fromkeys(0 if each in whole else each for each in shards if each in (*whole, *parts)))
    for zero in zeros:
        for size in sizes if zero else ():
            if zero < 3:
                found.append(Sharding(zero, size))
                continue
            for reshard in reshards if reshards is not None else (True, False):
                by_itself = reshard in (None, pipeline == 1)
                found.append(Sharding(3, size, "" if by_itself else GATHERS if reshard else KEEPS))
    return tuple(dict.fromkeys(found))


@lru_cache(maxsize=4096)
def divisors(number: int) -> tuple[int, ...]:
    """All divisors, in order."""
    small = [each for each in range(1, int(number**0.5) + 1) if number % each == 0]
    return tuple(sorted({*small, *(number // each for each in small)}))
