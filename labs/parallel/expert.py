"""Expert parallelism: the experts of a mixture are shared out over x ranks, which otherwise hold the same model.

Each rank trains on rows of its own and routes its own tokens. A token goes to where its expert is: an all-to-all sends
each rank the rows that its experts are to serve, the experts work, and a second one brings the results back in the
order in which they left. Backward has the same two the other way round. How many rows go from whom to whom the router
decides anew every time, so each rank first tells the others how many to expect: a third, tiny all-to-all.

What every rank sends in the first one is known beforehand: each of its N tokens `active` times, N × active × H values.
How many it gets, and sends back, depends on the router. Over all ranks together it is the same number. No token is
dropped, however crowded an expert: so the result is one process's, and a popular expert's rank has more work.

Gradients: all of the model but the experts is averaged over the data ranks as ever. An expert has, in its rank's
backward pass, gathered the gradients of the tokens of all x ranks; it wants the sum over all K data ranks divided by K
as well. So it is summed over the K/x ranks that hold the same expert, and divided by K.

Lepikhin et al. 2020 ("GShard"), section 3; Fedus et al. 2021 ("Switch Transformers"), section 2.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel

from labs.model import GPT, Experts, Mixture
from labs.parallel.buckets import all_reduce_together
from labs.parallel.mesh import Axis, Mesh
from labs.parallel.precision import as_multiplied


def split_experts(model: GPT, mesh: Mesh) -> list[MeanOfExpertGradients]:
    """Leave `model`, or a pipeline's stage of it, only this rank's experts. Returns what their gradients still need.

    `mesh.expert.size` must divide the number of experts.
    """
    if mesh.expert.size == 1:
        return []
    for mixture in _mixtures(model):
        mixture.add_module("experts", RemoteExperts(mixture.experts, mesh.expert))
    _exempt_from_ddp(model)
    return [MeanOfExpertGradients(model, mesh)]


def _mixtures(model: nn.Module) -> Iterator[Mixture]:
    return (module for module in list(model.modules()) if isinstance(module, Mixture))


class RemoteExperts(nn.Module):
    """This rank's share of the experts, where the model has all of them."""

    def __init__(self, whole: Experts, expert: Axis) -> None:
        super().__init__()
        assert len(whole) % expert.size == 0, f"{expert.size} ranks cannot share {len(whole)} experts equally"
        each = len(whole) // expert.size
        self.expert = expert
        self.local = Experts(whole[expert.index * each : (expert.index + 1) * each])

    def forward(self, rows: Tensor, counts: Tensor) -> Tensor:
        """`rows` (R, H) in the order of all experts, `counts` (experts,) of them for each; their results (R, H)."""
        size = self.expert.size
        rows = as_multiplied(rows)
        expected = torch.empty_like(counts)
        dist.all_to_all_single(expected, counts, group=self.expert.group)
        sent, received = (each.view(size, -1).sum(dim=1).tolist() for each in (counts, expected))

        arrived: Tensor = Exchange.apply(rows, sent, received, self.expert)  # type: ignore[no-untyped-call]
        # They come rank after rank, and of each rank expert after expert. The experts want one after the other.
        expert_of = torch.arange(len(self.local), device=rows.device).repeat(size).repeat_interleave(expected)
        order = expert_of.argsort(stable=True)
        done = self.local(arrived[order], expected.view(size, -1).sum(dim=0))
        arrived_order = torch.zeros_like(done).index_copy(0, order, done)
        back: Tensor = Exchange.apply(arrived_order, received, sent, self.expert)  # type: ignore[no-untyped-call]
        return back


class Exchange(Function):
    """All-to-all: row by row to the ranks in turn, `sent[r]` to rank r, and `received[r]` from it."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, sent: list[int], received: list[int], expert: Axis) -> Tensor:
        ctx.sent, ctx.received, ctx.expert = sent, received, expert
        return _exchange(rows, sent, received, expert)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None]:
        return _exchange(gradient, ctx.received, ctx.sent, ctx.expert), None, None, None


def _exchange(rows: Tensor, sent: list[int], received: list[int], expert: Axis) -> Tensor:
    arrived = rows.new_empty(sum(received), *rows.shape[1:])
    dist.all_to_all_single(arrived, rows.contiguous(), received, sent, group=expert.group)
    return arrived


def _exempt_from_ddp(model: nn.Module) -> None:
    """Each rank's experts are its own: DDP must neither average their gradients nor copy the first rank's to all."""
    mine = [
        f"{name}.{inner}"
        for name, module in model.named_modules()
        if isinstance(module, RemoteExperts)
        for inner, _ in module.named_parameters()
    ]
    exempt = DistributedDataParallel._set_params_and_buffers_to_ignore_for_model
    exempt(model, mine)  # type: ignore[no-untyped-call]


def shard_experts(
    model: GPT, mesh: Mesh, reshard_after_forward: bool, precision: MixedPrecisionPolicy
) -> set[nn.Parameter]:
    """ZeRO-3 of this rank's experts, which fewer ranks have than the rest: in units of their own, over those ranks.

    Returns the parameters that are not to be sharded at all, because no other rank has them.
    """
    every = [module for module in model.modules() if isinstance(module, RemoteExperts)]
    if mesh.expert_replicas.group is None:
        return {parameter for experts in every for parameter in experts.parameters()}
    replicas = DeviceMesh.from_group(mesh.expert_replicas.group, mesh.device_type)
    for experts in every:
        fully_shard(experts, mesh=replicas, reshard_after_forward=reshard_after_forward, mp_policy=precision)
    return set()


class MeanOfExpertGradients:
    """Once a step: the experts' gradients summed over the ranks that have the same ones, and divided by all data ranks.

    In one message, as they all are ready at the same time. Where FSDP has averaged them over those ranks already, as
    many again as the experts are shared out over are missing in the divisor.
    """

    def __init__(self, model: nn.Module, mesh: Mesh) -> None:
        self._experts = [module for module in model.modules() if isinstance(module, RemoteExperts)]
        self._replicas, self._data_ranks = mesh.expert_replicas, mesh.data.size

    def __call__(self) -> None:
        parameters = [parameter for experts in self._experts for parameter in experts.parameters()]
        found = [parameter.grad for parameter in parameters if parameter.grad is not None]
        sharded = [gradient.to_local() for gradient in found if isinstance(gradient, DTensor)]
        if sharded:
            for gradient in sharded:
                gradient.div_(self._data_ranks // self._replicas.size)
            return
        if self._replicas.size > 1 and found:
            all_reduce_together(found, self._replicas.group)
        for gradient in found:
            gradient.div_(self._data_ranks)
