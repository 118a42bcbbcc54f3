"""The cluster of a plan, as it is drawn."""

from __future__ import annotations

from app.planner.made import Plan
from app.theory.mesh import Mesh
from app.theory.planner.groups import MOST_GPUS, LaidAxis, LaidCluster, laid_axes, lay, measured


def draw(made: Plan) -> LaidCluster | None:
    """The cluster of a plan; None where only a size is known or GPUs do not fill their nodes."""
    if made.form.is_own or made.ranks == 1:
        return None
    parallel = made.form.values
    per_node = made.form.gpus_per_node
    if made.ranks % per_node or per_node > MOST_GPUS:
        return None
    mesh = Mesh(parallel["tensor"], parallel["context"], made.form.data, parallel["pipeline"])
    axes = laid_axes(mesh, per_node, made.estimate, made.link_text)
    if parallel["expert"] > 1:
        stride, size = mesh.stride("data"), int(parallel["expert"])
        nodes = -(-size * stride // per_node)
        axes += (LaidAxis("expert", size, stride, nodes, *measured(made.estimate, ("expert",), made.link_text)),)
    return lay(made.ranks, per_node, axes)
