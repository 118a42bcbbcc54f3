"""What updates the parameters, where every rank updates the ones it has by itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor

from labs.spec import RunTraining

_WEIGHT_DECAY = 0.01


class LocalOptimizer:
    """One of torch's optimizers over the parameters of this rank: replicas, or shards that FSDP cut."""

    def __init__(self, inner: torch.optim.Optimizer) -> None:
        self.inner = inner

    def step(self) -> None:
        self.inner.step()

    def zero_grad(self) -> None:
        self.inner.zero_grad()

    def tensors(self) -> Iterator[Tensor]:
        for state in self.inner.state.values():
            yield from (item for item in state.values() if isinstance(item, Tensor))


def make_optimizer(parameters: Iterable[nn.Parameter], training: RunTraining) -> torch.optim.Optimizer:
    """The optimizer `training` asks for, over `parameters`."""
    return torch.optim.AdamW(alike(parameters), lr=training.learning_rate, weight_decay=_WEIGHT_DECAY)


def alike(parameters: Iterable[nn.Parameter]) -> list[dict[str, Any]]:
    """`parameters` in groups that an optimizer can update in one call: plain, or sharded over the same ranks."""
    groups: dict[object, list[nn.Parameter]] = {}
    for parameter in parameters:
        groups.setdefault(parameter.device_mesh if isinstance(parameter, DTensor) else None, []).append(parameter)
    return [{"params": group} for group in groups.values()]
