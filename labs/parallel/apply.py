"""Spreads the plain model over the ranks as a spec asks, one kind of parallelism after the other.

Each is a file of this folder and can be read alone. Their order matters: what divides a layer's own work comes
before what cuts, replicates or shards layers. Sizes down to 1 work: there is then nobody to talk to.
"""

from __future__ import annotations

import torch.distributed as dist

from labs.model import GPT
from labs.parallel.context import split_context
from labs.parallel.ddp import apply_ddp
from labs.parallel.expert import split_experts
from labs.parallel.fsdp import apply_fsdp
from labs.parallel.mesh import Mesh
from labs.parallel.optimizers import LocalOptimizer, make_optimizer
from labs.parallel.strategy import Strategy
from labs.parallel.tensor import split_tensor
from labs.spec import RunSpec


def parallelise(model: GPT, spec: RunSpec, mesh: Mesh) -> Strategy:
    """Spread `model`, which every rank has built alike, over `mesh`."""
    finish = split_experts(model, mesh) + split_tensor(model, mesh.tensor, spec.parallel.sequence_parallel)
    my_tokens = split_context(model, mesh.context, spec.training.sequence)
    strategy = _over_data(model, spec, mesh)
    strategy.my_tokens = my_tokens
    strategy.finish[:0] = finish
    return strategy


def _over_data(model: GPT, spec: RunSpec, mesh: Mesh) -> Strategy:
    """Nothing sharded is DDP, everything sharded (ZeRO stage 3) is FSDP; without other data ranks it is neither."""
    if mesh.data.size == 1 and dist.get_world_size() > 1:
        return Strategy([model], LocalOptimizer(make_optimizer(model.parameters(), spec.training)))
    if spec.parallel.zero == 0:
        return apply_ddp(model, mesh, spec.training)
    if spec.parallel.zero == 3:
        return apply_fsdp(model, mesh, spec.training)
    raise NotImplementedError(f"ZeRO stage {spec.parallel.zero} is not implemented")
