"""How ranks are numbered over the axes of a parallel layout, and which of them talk to each other (F26)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Literal

from labs.spec import Parallel, SpecError, Violation

# From the axis whose neighbours have neighbouring ranks, and so share a node, to the slowest.
# Source: Narayanan et al. 2021, section 3 and Megatron-LM's rank order tp-cp-dp-pp.
Axis = Literal["tensor", "context", "data", "pipeline"]
AXES: tuple[Axis, ...] = ("tensor", "context", "data", "pipeline")


@dataclass(frozen=True)
class Mesh:
    """Sizes of the axes. A rank is its coordinates as digits, the first axis of `order` the least significant."""

    tensor: int = 1
    context: int = 1
    data: int = 1
    pipeline: int = 1
    order: tuple[Axis, ...] = AXES

    @property
    def sizes(self) -> tuple[int, ...]:
        """Sizes in the order of `AXES`."""
        return (self.tensor, self.context, self.data, self.pipeline)

    @property
    def world_size(self) -> int:
        """GPUs: the product of all axes."""
        return prod(self.sizes)

    def size(self, axis: str) -> int:
        """Ranks in one group of `axis`. Raises SpecError for an axis the mesh does not have."""
        return self.sizes[_position(axis)]

    def stride(self, axis: str) -> int:
        """How far apart the ranks of neighbours on `axis` are."""
        return prod(map(self.size, self.order[: self.order.index(_known(axis))]))

    def coordinates(self, rank: int) -> dict[str, int]:
        """Where `rank` stands on every axis. Raises SpecError for a rank outside the mesh."""
        if not 0 <= rank < self.world_size:
            message = f"The mesh has {self.world_size} ranks."
            raise SpecError([Violation("rank", rank, message, f"0 to {self.world_size - 1}")])
        return {axis: rank // self.stride(axis) % self.size(axis) for axis in AXES}

    def rank(self, coordinates: Mapping[str, int]) -> int:
        """The rank at `coordinates`; an axis left out is 0. Raises SpecError naming every axis that is exceeded."""
        wrong = [
            Violation(axis, place, f"The {axis} axis has {self.size(axis)} ranks.", f"0 to {self.size(axis) - 1}")
            for axis, place in coordinates.items()
            if not 0 <= place < self.size(axis)
        ]
        if wrong:
            raise SpecError(wrong)
        return sum(place * self.stride(axis) for axis, place in coordinates.items())

    def group_count(self, axis: str) -> int:
        """F26: communicators along `axis`, the product of all other axes."""
        return self.world_size // self.size(axis)

    def group(self, axis: str, rank: int) -> tuple[int, ...]:
        """The ranks `rank` communicates with along `axis`, itself among them."""
        stride = self.stride(axis)
        first = rank - self.coordinates(rank)[axis] * stride
        return tuple(range(first, first + self.size(axis) * stride, stride))

    def groups(self, axis: str) -> tuple[tuple[int, ...], ...]:
        """All communicators along `axis`, by their first rank."""
        stride, size = self.stride(axis), self.size(axis)
        firsts = (start + place for start in range(0, self.world_size, size * stride) for place in range(stride))
        return tuple(tuple(range(first, first + size * stride, stride)) for first in firsts)

    def nodes_spanned(self, axis: str, gpus_per_node: int) -> int:
        """The most nodes one group of `axis` reaches over, with ranks placed in order."""
        return max(len({rank // gpus_per_node for rank in group}) for group in self.groups(axis))


def mesh_of(parallel: Parallel) -> Mesh:
    """The mesh of a parallel layout."""
    return Mesh(parallel.tensor, parallel.context, parallel.data, parallel.pipeline)


def _position(axis: str) -> int:
    return AXES.index(_known(axis))


def _known(axis: str) -> Axis:
    """Raises SpecError."""
    found = next((each for each in AXES if each == axis), None)
    if found is None:
        raise SpecError([Violation("axis", axis, f"{axis!r} is no axis of the mesh.", ", ".join(AXES))])
    return found


def world_size(tensor: int, context: int, data: int, pipeline: int) -> int:
    """F26: GPUs of a layout, t·c·dp·p."""
    return Mesh(tensor, context, data, pipeline).world_size


def group_count(tensor: int, context: int, data: int, pipeline: int, axis: str) -> int:
    """F26: how many communicators the layout has along `axis`: GPUs over the axis' size."""
    return Mesh(tensor, context, data, pipeline).group_count(axis)


def coordinate(tensor: int, context: int, data: int, pipeline: int, axis: str, rank: int) -> int:
    """F26: where `rank` stands on `axis`. Raises SpecError for a rank outside the mesh."""
    return Mesh(tensor, context, data, pipeline).coordinates(rank)[axis]
