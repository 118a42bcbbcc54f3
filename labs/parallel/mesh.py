"""The ranks as a grid: which of them share what, and which talk to each other.

Every rank has one coordinate on each axis. Ranks that differ on one axis only form a group, and each kind of
parallelism talks inside the groups of its own axis:

  pipeline   different layers of the same model, for the same rows
  replicate  the same shard of everything, for different rows (HSDP; otherwise of size 1)
  shard      different rows, and under ZeRO different shards of what is replicated otherwise
  context    different shards of the same rows' tokens
  tensor     different parts of every matrix, for the same rows

and within shard, where a model has experts: expert, ranks that each have different ones.

The rightmost axis varies fastest: neighbouring ranks, which sit in one node, are a tensor group, because tensor
parallelism talks most. (Narayanan et al. 2021, section 3.3.)

`data` is all ranks that hold the same parameters or shards of them: replicate × shard × context. Gradients are
averaged over it. Ranks along `context` have the same rows, but each sees a part of their tokens only, so to the
parameters they are what different rows are.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from math import prod

import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh

from labs.spec import Parallel

AXES = ("pipeline", "replicate", "shard", "context", "tensor")
_DATA = ("replicate", "shard", "context")


@dataclass(frozen=True)
class Axis:
    """A group of ranks as one of its members sees it. Alone (`size` 1) there is no group and nothing to say."""

    name: str
    size: int = 1
    index: int = 0
    group: dist.ProcessGroup | None = None

    @property
    def is_first(self) -> bool:
        return self.index == 0

    @property
    def is_last(self) -> bool:
        return self.index == self.size - 1

    def neighbour(self, offset: int) -> int:
        """The global rank `offset` places further round the ring."""
        assert self.group is not None, "alone there is no neighbour"
        return dist.get_global_rank(self.group, (self.index + offset) % self.size)


class Mesh:
    """This rank's place in the grid. Every rank makes it at the same point, for making groups is collective."""

    def __init__(self, parallel: Parallel, device_type: str) -> None:
        sizes = axis_sizes(parallel)
        coordinates = coordinates_of(dist.get_rank(), sizes)
        wide = [name for name in AXES if sizes[name] > 1] or ["shard"]  # a mesh has at least one dimension
        shape = tuple(sizes[name] for name in wide)
        self.device_type = device_type
        self.sizes, self.coordinates = sizes, coordinates
        self._torch = init_device_mesh(device_type, shape, mesh_dim_names=tuple(wide))
        self._only_name = wide[0]
        self._flat_data: DeviceMesh | None = None
        self._labels: dict[str, str] = {}
        self._axes: dict[str, Axis] = {}
        for name in AXES:
            group = self._torch.get_group(name) if sizes[name] > 1 else None
            self._axes[name] = self._label(Axis(name, sizes[name], coordinates[name], group))
        self._axes["data"] = self._label(self._data_axis())
        if sizes["context"] > 1:  # the ring's messages in a group of their own, beside gradients that go the same ways
            self._axes["context"] = self._label(self._own_axis("context", lambda place: _without(place, "context")))
        self._share_out_experts(parallel.expert)
        self._axes["ends"] = self._label(self._ends_axis())

    @property
    def pipeline(self) -> Axis:
        return self._axes["pipeline"]

    @property
    def replicate(self) -> Axis:
        return self._axes["replicate"]

    @property
    def shard(self) -> Axis:
        return self._axes["shard"]

    @property
    def context(self) -> Axis:
        return self._axes["context"]

    @property
    def tensor(self) -> Axis:
        return self._axes["tensor"]

    @property
    def data(self) -> Axis:
        """Everybody with the same parameters: what gradients are averaged over."""
        return self._axes["data"]

    @property
    def expert(self) -> Axis:
        """Neighbouring data ranks that share out a mixture's experts."""
        return self._axes["expert"]

    @property
    def expert_replicas(self) -> Axis:
        """The data ranks that hold the same experts as this one."""
        return self._axes["expert_replicas"]

    @property
    def ends(self) -> Axis:
        """The first and the last pipeline rank, to themselves; no group on the ranks between."""
        return self._axes["ends"]

    @property
    def data_rank(self) -> int:
        """Which rows this rank is trained on; ranks along context, tensor and pipeline share them."""
        return self.coordinates["replicate"] * self.sizes["shard"] + self.coordinates["shard"]

    @property
    def data_ranks(self) -> int:
        return self.sizes["replicate"] * self.sizes["shard"]

    def label_of(self, group: dist.ProcessGroup) -> str:
        """The axis a process group belongs to; `world` for all ranks together, where that is no axis."""
        return self._labels.get(group.group_name, "world")

    def everybody(self) -> Axis:
        """All ranks: an axis that has them all, if there is one."""
        size = dist.get_world_size()
        for name in ("data", "tensor", "pipeline"):
            if self._axes[name].size == size:
                return self._axes[name]
        return Axis("world", size, dist.get_rank(), dist.group.WORLD)

    def data_mesh(self) -> DeviceMesh:
        """`data` in torch's terms: one dimension, or for HSDP two, replicate and shard. (HSDP has no context.)"""
        wide = tuple(name for name in _DATA if self.sizes[name] > 1)
        if len(wide) > 1 and self.sizes["replicate"] == 1:
            assert self._flat_data is not None
            return self._flat_data
        return self._torch[wide or (self._only_name,)]

    def _data_axis(self) -> Axis:
        wide = [name for name in _DATA if self.sizes[name] > 1]
        if len(wide) < 2:
            only = self._axes[wide[0]] if wide else Axis("data")
            return Axis("data", only.size, only.index, only.group)
        mesh = self._flat_data = self._torch[tuple(wide)]._flatten("data")
        size = prod(self.sizes[name] for name in wide)
        return Axis("data", size, mesh.get_local_rank(), mesh.get_group())

    def _share_out_experts(self, ranks: int) -> None:
        """Expert groups lie within data: `ranks` neighbours along shard; the data ranks of equal place in them repeat
        each other's experts."""
        for name in ("expert", "expert_replicas"):
            self._axes[name] = Axis(name)
        if ranks == 1:
            return

        def experts(place: dict[str, int]) -> Hashable:
            return _without({**place, "expert_group": place["shard"] // ranks}, "shard")

        def replicas(place: dict[str, int]) -> Hashable:
            return place["pipeline"], place["tensor"], place["shard"] % ranks

        self._axes["expert"] = self._label(self._own_axis("expert", experts))
        self._axes["expert_replicas"] = self._label(self._own_axis("expert_replicas", replicas))

    def _own_axis(self, name: str, key: Callable[[dict[str, int]], Hashable]) -> Axis:
        """New groups of the ranks whose places have the same `key`. Making groups is collective: all ranks make all."""
        members: dict[Hashable, list[int]] = {}
        for rank in range(dist.get_world_size()):
            members.setdefault(key(coordinates_of(rank, self.sizes)), []).append(rank)
        mine = Axis(name)
        for ranks in members.values():
            group = dist.new_group(ranks) if len(ranks) > 1 else None
            if dist.get_rank() in ranks:
                mine = Axis(name, len(ranks), ranks.index(dist.get_rank()), group)
        return mine

    def _ends_axis(self) -> Axis:
        """Every pair of ends makes its group on all ranks, as torch asks for."""
        length, mine = self.sizes["pipeline"], Axis("ends")
        apart = dist.get_world_size() // length  # pipeline is the slowest axis: from one stage to the next
        for first in range(apart if length > 1 else 0):
            ranks = [first, first + (length - 1) * apart]
            group = dist.new_group(ranks)
            if dist.get_rank() in ranks:
                mine = Axis("ends", 2, ranks.index(dist.get_rank()), group)
        return mine

    def _label(self, axis: Axis) -> Axis:
        if axis.group is not None:
            # `data` comes last: where it is one axis only, that axis's traffic is called data
            self._labels[axis.group.group_name] = axis.name
        return axis


def _without(place: dict[str, int], axis: str) -> Hashable:
    """The place as a key, but for its coordinate on `axis`."""
    return tuple(coordinate for name, coordinate in place.items() if name != axis)


def axis_sizes(parallel: Parallel) -> dict[str, int]:
    """How many ranks each axis has. data = replicate × shard; only HSDP replicates shards."""
    shard = parallel.shard or parallel.data
    return {
        "pipeline": parallel.pipeline,
        "replicate": parallel.data // shard,
        "shard": shard,
        "context": parallel.context,
        "tensor": parallel.tensor,
    }


def coordinates_of(rank: int, sizes: dict[str, int]) -> dict[str, int]:
    """The place of global rank `rank` in a grid of `sizes`, the last axis varying fastest."""
    found = {}
    for name in reversed(AXES):
        rank, found[name] = divmod(rank, sizes[name])
    return {name: found[name] for name in AXES}
