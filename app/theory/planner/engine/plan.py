"""A plan with everything resolved: what the engine computes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from math import gcd

from app.theory.mesh import AXES, Mesh
from app.theory.optimizers import optimizer_bytes_per_parameter
from app.theory.pipeline import FACTS, ScheduleFacts
from app.theory.planner.attention_kernels import Kernel
from app.theory.planner.engine.layer import LayerRequest
from app.theory.planner.engine.network import Group, Network, group
from app.theory.planner.engine.placement import Stage, stages
from app.theory.planner.engine.profiles import Profile, profile_named
from app.theory.planner.engine.roofline import Device
from app.theory.planner.fields import PlanParallel, PlanTraining
from app.theory.state import LAYOUTS, StateLayout
from labs.spec import V_SHAPED, Compression, Model

WIDEST_BYTES = 4.0  # fp32; all other precisions keep and send 16 bits, and cast at the product where it takes fewer


@dataclass(frozen=True)
class Overlaps:
    """What runs beside compute in a plan, every choice made (`Overlap` in a request leaves some to the profile)."""

    data: bool
    weights: bool
    tensor: bool
    pipeline: bool
    expert: bool


@dataclass(frozen=True)
class Plan:
    """`micro_batches` are per step and data rank. `device` and `attention_kernel` are None where no GPU is named:
    nothing is timed then."""

    model: Model
    training: PlanTraining
    parallel: PlanParallel
    micro_batches: int
    compression: Compression
    profile_name: str
    overlap: Overlaps
    attention_kernel: Kernel | None
    device: Device | None
    network: Network

    @cached_property
    def profile(self) -> Profile:
        return profile_named(self.profile_name, self.training.compile)

    @cached_property
    def layout(self) -> StateLayout:
        return LAYOUTS[self.training.state_layout]

    @cached_property
    def compute_bytes(self) -> float:
        return WIDEST_BYTES if self.training.precision == "fp32" else WIDEST_BYTES / 2

    @cached_property
    def reduce_bytes(self) -> float:
        """Of a gradient on its way: as the implementation reduces all, or in the type that the layout keeps, of two the
        wider."""
        return self.profile.reduce_bytes or min(self.layout.gradients, WIDEST_BYTES)

    @cached_property
    def optimizer_bytes(self) -> float:
        return optimizer_bytes_per_parameter(self.layout, self.training.optimizer)

    @cached_property
    def tokens(self) -> int:
        """Tokens of a micro-batch on one rank: context parallelism divides the sequence."""
        return self.training.micro_batch * self.training.sequence // self.parallel.context

    @cached_property
    def replicas(self) -> int:
        """Ranks that hold the same weights before ZeRO: context ranks see other tokens of the same model."""
        return self.parallel.data * self.parallel.context

    @cached_property
    def shards(self) -> int:
        """Ranks ZeRO shards the dense parameters over."""
        return self.parallel.shard or self.replicas

    @cached_property
    def expert_shards(self) -> int:
        """Ranks ZeRO shards one rank's experts over: those among its shards that hold the same experts."""
        return expert_shards(self.shards, self.parallel.tensor // self.parallel.expert_cut, self.parallel.expert)

    @cached_property
    def keeps_weights(self) -> bool:
        """Whether ZeRO-3 gathers weights once a step and sums gradients whole until its end, as pipelines do: with
        every micro-batch each would travel again."""
        asked = self.parallel.reshard_after_forward
        return self.parallel.zero == 3 and (self.parallel.pipeline > 1 if asked is None else not asked)

    @cached_property
    def schedule(self) -> ScheduleFacts:
        """Which closed forms the plan's schedule follows."""
        return FACTS[self.parallel.schedule]

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        parallel = self.parallel
        return stages(
            self.model,
            parallel.pipeline,
            parallel.virtual_stages,
            parallel.schedule in V_SHAPED,
            parallel.stages,
            self.training.predicted_tokens,
        )

    @cached_property
    def _layers(self) -> tuple[LayerRequest, LayerRequest]:
        def request(routed: bool) -> LayerRequest:
            return LayerRequest(
                self.model,
                routed,
                self.tokens,
                self.training.sequence,
                self.parallel.tensor,
                self.parallel.expert,
                self.parallel.sequence_parallel,
                self.training.attention,
                self.training.recompute,
                self.compute_bytes,
                self.profile_name,
                self.training.compile,
                self.training.precision,
                self.parallel.expert_cut,
                self.training.recompute_modules,
                self.parallel.context,
            )

        return request(False), request(True)

    def layer(self, routed: bool) -> LayerRequest:
        """The dense or the routed layer of this plan on one rank."""
        return self._layers[routed]

    def layers_of(self, stage: Stage) -> tuple[tuple[LayerRequest, int], ...]:
        """The kinds of layer a stage has, with how many of each."""
        dense, routed = self._layers
        if not stage.routed_layers:
            return ((dense, stage.dense_layers),)
        if not stage.dense_layers:
            return ((routed, stage.routed_layers),)
        return ((dense, stage.dense_layers), (routed, stage.routed_layers))

    def ranks(self, name: str) -> Group:
        """Where the group called `name` sits. Rank order: tensor fastest, then context, data, pipeline (F26), unless
        the plan has another."""
        return self._groups[name]

    @cached_property
    def _groups(self) -> Mapping[str, Group]:
        p = self.parallel
        rails = self.profile.all_rails or p.zero < 3
        if p.has_own_order:
            mesh = Mesh(p.tensor, p.context, p.data, p.pipeline, p.order or AXES)
            return _groups_in_order(self.network, mesh, self.replicas, rails)
        return _groups(
            self.network,
            p.tensor,
            p.context,
            p.pipeline,
            self.replicas,
            p.expert,
            self.shards,
            self.expert_shards,
            p.expert_cut,
            rails,
        )


@lru_cache(maxsize=4096)
def _groups_in_order(network: Network, mesh: Mesh, replicas: int, all_rails: bool) -> Mapping[str, Group]:
    """The groups of a plan whose axes lie in an order of their own. Ranks that repeat weights are those of the data and
    the context axis together, which need not lie side by side."""
    along: dict[str, Group] = {axis: group(network, mesh.size(axis), mesh.stride(axis)) for axis in AXES}
    alone = Group(1, 1)
    together = Group(replicas, along["data"].per_node * along["context"].per_node)
    return {
        **along,
        "expert": alone,
        "expert tensor": along["tensor"],
        "data": together,
        "shard": replace(together, all_rails=all_rails),
        "replicate": alone,
        "expert data": together,
        "expert shard": replace(together, all_rails=all_rails),
        "expert replicate": alone,
        "ends": _ends(along["pipeline"]),
    }


def _ends(pipeline: Group) -> Group:
    """First and last stage: in one node where all stages are, else apart where nodes cut the pipeline worst."""
    size = min(2, pipeline.size)
    return Group(size, size if pipeline.nodes == 1 else 1)


def expert_shards(shards: int, folded: int, expert: int) -> int:
    """Of `shards` ranks of state, each with `folded` tensor ranks that experts are dealt over, those that hold the same
    of `expert` parts of the experts."""
    ranks = shards * folded
    return ranks // gcd(ranks, expert)


@lru_cache(maxsize=4096)
def _groups(
    network: Network,
    tensor: int,
    context: int,
    pipeline: int,
    replicas: int,
    expert: int,
    shards: int,
    expert_shards: int,
    expert_cut: int,
    all_rails: bool,
) -> Mapping[str, Group]:
    copies = replicas * tensor // (expert * expert_cut)
    folds = expert_cut < tensor
    # Experts that share ranks with tensor parallelism lie as near as they can; else data ranks have them, and context
    # ranks hold the same ones, side by side.
    near = expert_cut if folds else tensor * context
    apart = expert_cut * expert if folds else tensor if context > 1 else tensor * expert
    places = {
        "tensor": (tensor, 1),
        "context": (context, tensor),
        "expert": (expert, near),
        "expert tensor": (expert_cut, 1),
        "data": (replicas, tensor),
        "shard": (shards, tensor),
        "replicate": (replicas // shards, tensor * shards),
        "expert data": (copies, apart),
        "expert shard": (expert_shards, apart),
        "expert replicate": (max(1, copies // expert_shards), tensor * shards),
        "pipeline": (pipeline, tensor * replicas),
    }
    groups = {
        name: group(network, max(1, size), stride, all_rails or not name.endswith("shard"))
        for name, (size, stride) in places.items()
    }
    return {**groups, "ends": _ends(groups["pipeline"])}
