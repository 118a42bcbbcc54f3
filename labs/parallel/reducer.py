"""What DDP does, in Python, for a dry run: torch's own reducer is C++ that writes to memory, and there is none.

The same buckets at the same moments with the same collectives (Li et al. 2020, section 3.2). Gradients end up as views
into flat buffers. A hook on every parameter notices when its gradient is there, and the last one of a bucket starts the
bucket's all-reduce. The first step has a single bucket; then they are dealt out in the order in which gradients came.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from labs.parallel.buckets import in_buckets
from labs.parallel.mesh import Axis


class Replica(nn.Module):
    """A module whose gradients are averaged over `data` when `backward` has them, but for within `no_sync`."""

    def __init__(self, module: nn.Module, data: Axis, bucket_bytes: int) -> None:
        super().__init__()
        self.module = module
        self._data, self._bucket_bytes = data, bucket_bytes
        self._arrived: list[nn.Parameter] = []  # in the order of their first arrival
        self._regrouped = False
        self._syncs = True
        self._flat: list[Tensor] = []
        self._missing: list[set[int]] = []
        self._bucket_of: dict[int, int] = {}
        self._views: dict[int, Tensor] = {}
        self._group([list(module.parameters())])
        for parameter in module.parameters():
            parameter.register_post_accumulate_grad_hook(self._gradient_is_there)  # type: ignore[no-untyped-call]

    def forward(self, *inputs: Any, **more: Any) -> object:
        if self._arrived and not self._regrouped:
            self._group([*in_buckets(self._arrived, self._bucket_bytes)])
            self._regrouped = True
        if self._syncs:
            self._expect_all()
        return self.module(*inputs, **more)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Within, gradients only add up."""
        self._syncs = False
        try:
            yield
        finally:
            self._syncs = True

    def _group(self, buckets: list[list[nn.Parameter]]) -> None:
        """New buffers for `buckets`, which together are all parameters."""
        self._views, self._bucket_of = {}, {}
        self._flat = [torch.zeros(sum(each.numel() for each in bucket), dtype=bucket[0].dtype) for bucket in buckets]
        for index, bucket in enumerate(buckets):
            parts = torch.split(self._flat[index], [parameter.numel() for parameter in bucket])
            for parameter, part in zip(bucket, parts, strict=True):
                self._views[id(parameter)] = part.view_as(parameter)
                self._bucket_of[id(parameter)] = index
        self._expect_all()

    def _expect_all(self) -> None:
        self._missing = [set() for _ in self._flat]
        for parameter, bucket in self._bucket_of.items():
            self._missing[bucket].add(parameter)

    def _gradient_is_there(self, parameter: nn.Parameter) -> None:
        if not self._syncs or parameter.grad is None:
            return
        # Autograd has made a tensor of its own for it, and without `no_sync` only now it goes to its bucket: with
        # accumulation every gradient exists twice for as long as the last backward runs.
        view = self._views[id(parameter)]
        parameter.grad = view.copy_(parameter.grad)
        if not self._regrouped:
            self._arrived.append(parameter)
        bucket = self._bucket_of[id(parameter)]
        self._missing[bucket].discard(id(parameter))
        if not self._missing[bucket]:
            dist.all_reduce(self._flat[bucket], group=self._data.group)
            self._flat[bucket] /= self._data.size
