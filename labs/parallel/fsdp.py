"""Fully sharded data parallelism (ZeRO stage 3): every rank works on its own rows, but holds only its share
of the parameters, of the gradients and of the optimizer's state.

A layer's parameters are brought together (all-gather) when the layer is about to be computed, and let go
right after; in backward once more. Its gradients are averaged so that each rank receives only the part that
belongs to its share (reduce-scatter). The optimizer then updates the share, and needs no communication.

What a rank pays in fp32 with AdamW: 16/K bytes for every parameter of the model with K ranks, and for a
moment a whole layer's parameters and gradients. What it pays in communication: two all-gathers and one
reduce-scatter where DDP has one all-reduce, which is a reduce-scatter and an all-gather in one: half as
much again.

Zhao et al. 2023, "PyTorch FSDP"; Rajbhandari et al. 2020, "ZeRO". This is FSDP2 (`fully_shard`).
"""

from __future__ import annotations

from typing import Any

from torch.distributed.fsdp import CPUOffloadPolicy, OffloadPolicy, fully_shard

from labs.model import GPT
from labs.parallel.expert import shard_experts
from labs.parallel.mesh import Mesh
from labs.parallel.offload import home_of
from labs.parallel.precision import fsdp_policy, local_optimizer
from labs.parallel.strategy import Strategy, unique_parameters
from labs.spec import RunTraining


def apply_fsdp(models: list[GPT], mesh: Mesh, training: RunTraining) -> Strategy:
    """Shard `models` in place over `mesh.data`, each of them as one unit for each block, and a last one for everything
    outside the blocks.

    A unit is what is gathered and let go together. The smaller the units, the less memory the gathered
    ones take; the larger, the fewer and more efficient the collectives. A block is the usual choice.
    Parameters are cut along their first dimension into K equal pieces; where K does not divide it, the
    pieces are padded, and so is what is sent.

    Over a mesh of two dimensions (HSDP) a unit is sharded over `shard`, which all-gathers and reduce-scatters, and each
    rank then all-reduces its share of the gradients over `replicate`, the ranks that hold the same shard in other
    groups. With G shards a parameter costs 16/G bytes instead of 16/K, and the frequent collectives stay among G
    ranks, which may sit in one node. Zhao et al. 2023, section 3.2.2.

    `reshard_after_forward=False` keeps the gathered blocks from forward to backward: no second
    all-gather, but at the end of forward the whole model is there.
    """
    data, reshard = mesh.data_mesh(), training.reshard_after_forward
    precision = fsdp_policy(training)
    # Pinned, so that the GPU's copies run beside its computing; without a GPU there is nothing to pin for.
    offload = CPUOffloadPolicy(pin_memory=mesh.device_type == "cuda") if training.offload == "all" else OffloadPolicy()
    policies: dict[str, Any] = {"mesh": data, "mp_policy": precision, "offload_policy": offload}
    for model in models:
        whole = shard_experts(model, mesh, reshard, precision)
        for block in model.blocks:
            fully_shard(block, reshard_after_forward=reshard, ignored_params=whole, **policies)
        # The outermost unit (embeddings, last norm, head) is left to FSDP's default, which keeps it from
        # forward to backward: backward begins with it, so it would be gathered again at once.
        fully_shard(model, ignored_params=whole, **policies)
    # Every micro-batch is reduce-scattered, and the shares add up. `set_requires_gradient_sync(last)` would
    # send gradients once a step only, but then each rank keeps the whole model's until then.
    home = home_of(training)
    optimizer = local_optimizer(unique_parameters(models), training, home)
    return Strategy([*models], optimizer, measure=home.measure if home is not None else None)
