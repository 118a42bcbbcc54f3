"""Where the groups of a plan lie: nodes, GPUs and the peers of one of them along every axis."""

from __future__ import annotations

from dataclasses import dataclass

from app.planner.service import Plan
from app.theory.mesh import AXES, Mesh

MOST_NODES = 32  # drawn
_MOVES = {
    "tensor": "inside every layer, forward and backward",
    "context": "keys and values round a ring",
    "data": "gradients, and with sharding weights",
    "pipeline": "activations to the next stage, gradients back",
    "expert": "tokens to their experts and back",
}
_GROUPS = {"data": ("data", "shard", "replicate")}


@dataclass(frozen=True)
class Axis:
    """An axis as the drawing needs it: ranks, how far apart neighbours are, the link and what no compute hides."""

    name: str
    size: int
    stride: int
    nodes: int
    link: str
    exposed_seconds: float
    moves: str

    @property
    def is_inside(self) -> bool:
        return self.nodes == 1


@dataclass(frozen=True)
class Cluster:
    """GPUs in nodes, ranks placed in order: tensor neighbours side by side, pipeline stages farthest apart."""

    ranks: int
    per_node: int
    nodes: tuple[range, ...]
    more: int
    axes: tuple[Axis, ...]

    def axis_of(self, rank: int) -> str:
        """Along which axis alone a GPU is a peer of the first one; empty for none."""
        away = [axis.name for axis in self.axes if axis.name != "expert" and rank // axis.stride % axis.size]
        return away[0] if len(away) == 1 else ""


def draw(made: Plan) -> Cluster | None:
    """The cluster of a plan; None where only a size is known or GPUs do not fill their nodes."""
    if made.form.is_own or made.ranks == 1:
        return None
    parallel = made.form.values
    per_node = made.form.gpus_per_node
    if made.ranks % per_node:
        return None
    mesh = Mesh(parallel["tensor"], parallel["context"], made.form.data, parallel["pipeline"])
    axes = [_axis(made, mesh, name, per_node) for name in AXES]
    if parallel["expert"] > 1:
        stride, size = mesh.stride("data"), int(parallel["expert"])
        nodes = -(-size * stride // per_node)
        link, exposed = _measured(made, ("expert",))
        axes.append(Axis("expert", size, stride, nodes, link, exposed, _MOVES["expert"]))
    count = made.ranks // per_node
    drawn = tuple(range(node * per_node, (node + 1) * per_node) for node in range(min(count, MOST_NODES)))
    return Cluster(made.ranks, per_node, drawn, count - len(drawn), tuple(axes))


def _axis(made: Plan, mesh: Mesh, name: str, per_node: int) -> Axis:
    link, exposed = _measured(made, _GROUPS.get(name, (name,)))
    return Axis(name, mesh.size(name), mesh.stride(name), _nodes(mesh, name, per_node), link, exposed, _MOVES[name])


def _nodes(mesh: Mesh, name: str, per_node: int) -> int:
    """How many nodes the first GPU's group reaches over."""
    return len({rank // per_node for rank in mesh.group(name, 0)})


def _measured(made: Plan, groups: tuple[str, ...]) -> tuple[str, float]:
    """(links, seconds that no compute hides) of what the estimate says these groups send."""
    rows = [row for row in made.estimate.communication if row.group in groups]
    links = dict.fromkeys(made.link_text(row.link) for row in rows)
    return " and ".join(links), sum(row.exposed_seconds or 0.0 for row in rows)
