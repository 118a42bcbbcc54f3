"""Data parallelism where there is no single backward pass: the mean of the replicas' gradients, once all are there.

DDP averages a gradient in the backward pass that completes it, and takes it that one backward follows one forward.
In a pipeline the passes of many micro-batches are interleaved. So here the gradients simply add up, and after the
step's last pass they are averaged, in flat buffers of about `bucket_bytes`: the same bytes, but nothing left to hide
them behind. Megatron-LM does the same. What a rank pays is what DDP's rank pays, and for a moment one buffer besides.
"""

from __future__ import annotations

from torch import nn

from labs.parallel.buckets import all_reduce_together, in_buckets
from labs.parallel.mesh import Mesh
from labs.parallel.offload import home_of
from labs.parallel.precision import in_compute_precision, local_optimizer
from labs.parallel.strategy import Strategy, unique_parameters
from labs.spec import RunTraining


def apply_replicas(modules: list[nn.Module], mesh: Mesh, training: RunTraining) -> Strategy:
    """Leave `modules` whole on every rank, and average their gradients over `mesh.data` after every step's passes."""
    parameters = unique_parameters(modules)

    def average() -> None:
        gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
        for bucket in in_buckets(gradients, training.bucket_bytes):
            all_reduce_together(bucket, mesh.data.group, divisor=mesh.data.size)

    home = home_of(training)
    return Strategy(
        [in_compute_precision(module, training) for module in modules],
        local_optimizer(parameters, training, home),
        finish=[average] if mesh.data.size > 1 else [],
        measure=home.measure if home is not None else None,
    )
