"""Spreads the plain model over the ranks as a spec asks, one kind of parallelism after the other.

Each is a file of this folder and can be read alone. Their order matters: what divides a layer's own work comes
before what cuts, replicates or shards layers. Sizes down to 1 work: there is then nobody to talk to.
"""

from __future__ import annotations

from labs.model import GPT
from labs.parallel.ddp import apply_ddp
from labs.parallel.fsdp import apply_fsdp
from labs.parallel.mesh import Mesh
from labs.parallel.precision import scale_loss, store_weights
from labs.parallel.recompute import recompute_blocks
from labs.parallel.strategy import Strategy
from labs.parallel.zero import apply_zero, apply_zero_redundancy_optimizer
from labs.spec import RunSpec


def parallelise(model: GPT, spec: RunSpec, mesh: Mesh) -> Strategy:
    """Spread `model`, which every rank has built alike, over `mesh`."""
    store_weights(model, spec.training)
    recomputation = recompute_blocks(model.blocks, spec.training)
    strategy = _over_data(model, spec, mesh)
    strategy.recomputation = recomputation
    if spec.training.loss_scaling:
        scale_loss(strategy, mesh)
    return strategy


def _over_data(model: GPT, spec: RunSpec, mesh: Mesh) -> Strategy:
    """Nothing sharded is DDP, everything sharded (ZeRO stage 3) is FSDP; in between are stages 1 and 2."""
    if spec.parallel.zero == 0:
        return apply_ddp(model, mesh, spec.training, spec.compression)
    if spec.parallel.zero == 3:
        return apply_fsdp(model, mesh, spec.training)
    if spec.training.zero_implementation == "ZeroRedundancyOptimizer":
        return apply_zero_redundancy_optimizer(model, mesh, spec.training)
    return apply_zero(model, mesh, spec.training, spec.parallel.zero)
