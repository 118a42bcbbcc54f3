"""Spreads the plain model over the ranks as a spec asks, one kind of parallelism after the other.

Each is a file of this folder and can be read alone. Their order matters: what divides a layer's own work comes
before what cuts, replicates or shards layers. Sizes down to 1 work: there is then nobody to talk to.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch
import torch.distributed as dist
from torch import nn

from labs.model import GPT, write_attention_out
from labs.parallel.context import split_context
from labs.parallel.ddp import apply_ddp
from labs.parallel.expert import split_experts
from labs.parallel.fsdp import apply_fsdp
from labs.parallel.mesh import Mesh
from labs.parallel.pipeline import PipelinePasses, TiedEnds, cut_into_stages
from labs.parallel.precision import scale_loss, store_weights
from labs.parallel.recompute import recompute_blocks
from labs.parallel.replicas import apply_replicas
from labs.parallel.strategy import Strategy
from labs.parallel.tensor import split_tensor
from labs.parallel.zero import apply_zero, apply_zero_redundancy_optimizer
from labs.spec import RunSpec


def parallelise(model: GPT, spec: RunSpec, mesh: Mesh, device: torch.device) -> Strategy:
    """Spread `model`, which every rank has built alike, over `mesh`."""
    store_weights(model, spec.training)
    if spec.training.attention == "full":
        write_attention_out(model)
    recomputation = recompute_blocks(model.blocks, spec.training)
    means = split_experts(model, mesh)
    sums = split_tensor(model, mesh.tensor, spec.parallel.sequence_parallel)
    my_tokens = split_context(model, mesh.context, spec.training.sequence)
    strategy = _over_stages(model, spec, mesh, device)
    strategy.my_tokens, strategy.recomputation = my_tokens, recomputation
    strategy.finish += [*means, *(partial(each, strategy.shares_of) for each in sums)]
    if spec.training.loss_scaling:
        scale_loss(strategy, mesh)
    return strategy


def _over_stages(model: GPT, spec: RunSpec, mesh: Mesh, device: torch.device) -> Strategy:
    """A pipeline cuts the layers between ranks, before they are replicated or sharded."""
    if spec.parallel.pipeline == 1:
        return _over_data([model], spec, mesh)
    stages = cut_into_stages(model, spec.parallel, mesh)
    ends = [stage.tokens for stage in stages if (stage.is_first or stage.is_last) and model.head is None]
    strategy = _over_data([*stages], spec, mesh, ends)
    strategy.passes = PipelinePasses(strategy, spec, mesh, device)
    if len(ends) == 1:  # both ends on one rank share the table itself
        strategy.finish.append(partial(TiedEnds(ends[0], mesh.ends), strategy.shares_of))
    return strategy


def _over_data(models: list[GPT], spec: RunSpec, mesh: Mesh, ends: Sequence[nn.Module] = ()) -> Strategy:
    """Nothing sharded is DDP, everything sharded (ZeRO stage 3) is FSDP; in between are stages 1 and 2."""
    zero, training = spec.parallel.zero, spec.training
    alone = mesh.data.size == 1 and dist.get_world_size() > 1  # other ranks, but none with the same parameters
    in_pipeline = spec.parallel.pipeline > 1
    if zero in (1, 2) and training.zero_implementation == "flat-buffer":
        return apply_zero([*models], mesh, training, zero, in_pipeline, ends)
    if alone or (zero == 0 and in_pipeline):
        return apply_replicas([*models], mesh, training)
    if zero == 3:
        return apply_fsdp(models, mesh, training)
    (model,) = models  # what goes on follows one backward pass: no pipeline
    if zero == 0:
        return apply_ddp(model, mesh, training, spec.compression)
    return apply_zero_redundancy_optimizer(model, mesh, training)
