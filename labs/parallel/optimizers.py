"""What updates the parameters, where every rank updates the ones it has by itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import torch
from torch import Tensor, nn

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
    return torch.optim.AdamW(parameters, lr=training.learning_rate, weight_decay=_WEIGHT_DECAY)
