"""Where the groups of a plan lie: nodes, GPUs, and along every axis the peers of the first one, their link and what it
costs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from app.theory.mesh import Mesh
from app.theory.planner.results import Estimate

MOST_NODES, MOST_GPUS = 32, 4096  # drawn
MOVES = {
    "tensor": "inside every layer, forward and backward",
    "context": "keys and values round a ring",
    "data": "gradients, and with sharding weights",
    "pipeline": "activations to the next stage, gradients back",
    "expert": "tokens to their experts and back",
}
_GROUPS = {"data": ("data", "shard", "replicate")}
LINKS = {"intra_node": "the link inside a node", "inter_node": "the network"}


@dataclass(frozen=True)
class LaidAxis:
    """An axis as it lies: ranks, how far apart neighbours are, over how many nodes the first GPU's group reaches, the
    link, and seconds of a step, all of them and those that no compute hides."""

    name: str
    size: int
    stride: int
    nodes: int
    link: str = ""
    seconds: float = 0.0
    exposed_seconds: float = 0.0

    @property
    def is_inside(self) -> bool:
        return self.nodes == 1

    @property
    def moves(self) -> str:
        """What goes along it."""
        return MOVES[self.name]


@dataclass(frozen=True)
class LaidCluster:
    """GPUs in nodes, ranks placed in order: neighbours on the first axis side by side, on the last farthest apart."""

    ranks: int
    per_node: int
    nodes: tuple[range, ...]
    more: int
    axes: tuple[LaidAxis, ...]

    def axis_of(self, rank: int) -> str:
        """Along which axis alone a GPU is a peer of the first one; empty for none."""
        if rank >= self.used:
            return ""
        away = [axis.name for axis in self.axes if axis.name != "expert" and rank // axis.stride % axis.size]
        return away[0] if len(away) == 1 else ""

    @property
    def used(self) -> int:
        """GPUs that the axes take."""
        return max((axis.size * axis.stride for axis in self.axes if axis.name != "expert"), default=1)


def lay(gpus: int, per_node: int, axes: tuple[LaidAxis, ...]) -> LaidCluster:
    """A cluster of `gpus` in full nodes, with the `axes` that lie on it."""
    count = gpus // per_node
    drawn = tuple(
        range(node * per_node, (node + 1) * per_node) for node in range(min(count, MOST_NODES, MOST_GPUS // per_node))
    )
    return LaidCluster(gpus, per_node, drawn, count - len(drawn), axes)


def laid_axes(
    mesh: Mesh, per_node: int, made: Estimate | None, link_text: Callable[[str], str] = LINKS.__getitem__
) -> tuple[LaidAxis, ...]:
    """Every axis of a mesh, in the order of its ranks, with what an estimate says of it."""
    return tuple(
        LaidAxis(
            name,
            mesh.size(name),
            mesh.stride(name),
            len({rank // per_node for rank in mesh.group(name, 0)}),
            *measured(made, _GROUPS.get(name, (name,)), link_text),
        )
        for name in mesh.order
    )


def measured(
    made: Estimate | None, groups: tuple[str, ...], link_text: Callable[[str], str]
) -> tuple[str, float, float]:
    """(links, seconds, seconds that no compute hides) of what an estimate says these groups send in a step."""
    rows = [row for row in made.communication if row.group in groups] if made else []
    links = dict.fromkeys(link_text(row.link) for row in rows)
    seconds = sum(row.seconds or 0.0 for row in rows)
    return " and ".join(links), seconds, sum(row.exposed_seconds or 0.0 for row in rows)
