"""Distributed data parallelism: every rank holds the whole model and works on its own rows.

After `backward` each rank has the gradient of its own rows. What is wanted is the mean over all rows, and
that is the mean of the ranks' gradients: one all-reduce of as many bytes as the gradients have. DDP starts
it early. Gradients are born in *buckets*, flat buffers of about `bucket_bytes`; as soon as all gradients of
a bucket are there it is all-reduced, while backward goes on computing earlier layers' gradients.

What a rank pays in fp32 with AdamW: 4 bytes for the parameter, 4 for the gradient, 8 for the optimizer's
two moments: 16 bytes for every parameter of the model, on every rank.

Li et al. 2020, "PyTorch Distributed: Experiences on Accelerating Data Parallel Training".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext

import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from labs.parallel.compression import compress_gradients
from labs.parallel.mesh import Mesh
from labs.parallel.offload import home_of
from labs.parallel.precision import in_compute_precision, local_optimizer
from labs.parallel.reducer import Replica
from labs.parallel.strategy import Strategy
from labs.spec import Compression, RunTraining


def apply_ddp(model: nn.Module, mesh: Mesh, training: RunTraining, compression: Compression) -> Strategy:
    """Replicate `model` over `mesh.data`, and send its gradients compressed if `compression` says so."""
    replica = replicate(model, mesh, training)
    kept: Callable[[], Iterable[Tensor]] = lambda: ()  # noqa: E731 - what compressing keeps from step to step
    if isinstance(replica, DistributedDataParallel):
        kept = compress_gradients(replica, mesh.data, compression).kept
    home = home_of(training)
    optimizer = local_optimizer(replica.parameters(), training, home, kept)
    return Strategy(
        [replica],
        optimizer,
        averaging_last(replica),
        has_buckets=True,
        measure=home.measure if home is not None else None,
    )


def averaging_last(replica: DistributedDataParallel | Replica) -> Callable[[bool], AbstractContextManager[None]]:
    """The context of a micro-batch: gradients add up on the rank itself, for only their sum is worth sending."""
    return lambda last: nullcontext() if last else replica.no_sync()


def replicate(model: nn.Module, mesh: Mesh, training: RunTraining) -> DistributedDataParallel | Replica:
    """`model` as one of as many replicas as there are data ranks. The first rank's parameters are broadcast once,
    though all ranks already built the same.

    The first step uses one single bucket: DDP does not know yet in which order gradients arrive. At the
    start of the second it regroups them in the order seen, and closes a bucket when it has reached
    `bucket_bytes`, so buckets are at least that large, but for the last.
    """
    computes = in_compute_precision(model, training)
    if dist.get_backend() == "fake":  # a dry run: torch's reducer would write to memory that is not there
        return Replica(computes, mesh.data, training.bucket_bytes)
    return DistributedDataParallel(
        computes,
        process_group=mesh.data.group,  # none, where a single rank is left alone: then all ranks, which is itself
        bucket_cap_mb=training.bucket_bytes / 2**20,
        # `.grad` is a view into its bucket. Without this every gradient exists twice, 20 bytes a parameter.
        gradient_as_bucket_view=True,
    )
