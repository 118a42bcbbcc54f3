"""Spreads the plain model over the ranks as a spec asks, one kind of parallelism after the other.

Each is a file of this folder and can be read alone. Their order matters: what divides a layer's own work comes
before what cuts, replicates or shards layers. Sizes down to 1 work: there is then nobody to talk to.
"""

from __future__ import annotations

from labs.model import GPT
from labs.parallel.ddp import apply_ddp
from labs.parallel.fsdp import apply_fsdp
from labs.parallel.mesh import Mesh
from labs.parallel.strategy import Strategy
from labs.spec import RunSpec


def parallelise(model: GPT, spec: RunSpec, mesh: Mesh) -> Strategy:
    """Spread `model`, which every rank has built alike, over `mesh`."""
    return _over_data(model, spec, mesh)


def _over_data(model: GPT, spec: RunSpec, mesh: Mesh) -> Strategy:
    """Nothing sharded is DDP, everything sharded (ZeRO stage 3) is FSDP."""
    if spec.parallel.zero == 0:
        return apply_ddp(model, mesh, spec.training)
    if spec.parallel.zero == 3:
        return apply_fsdp(model, mesh, spec.training)
    raise NotImplementedError(f"ZeRO stage {spec.parallel.zero} is not implemented")
