"""What updates the parameters, where every rank updates the ones it has by itself.

AdamW (Loshchilov & Hutter 2019) and SGD with momentum are torch's own. LARS and LAMB, which were made for very large
batches, are written out here: both scale a tensor's step by a *trust ratio*, the norm of the weights over the norm of
what is about to be subtracted from them, so that no layer moves by more than a fixed part of itself.

What a parameter costs, in the moments' own precision: AdamW and LAMB keep two values, SGD and LARS one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor

from labs.parallel.buckets import local
from labs.spec import RunTraining

_WEIGHT_DECAY = 0.01
_MOMENTUM = 0.9


def make_optimizer(parameters: Iterable[nn.Parameter], training: RunTraining) -> torch.optim.Optimizer:
    """The optimizer `training` asks for, over `parameters`."""
    made, settings = optimizer_class(training)
    return made(alike(parameters), **settings)


def optimizer_class(training: RunTraining) -> tuple[type[torch.optim.Optimizer], dict[str, Any]]:
    """The same, not yet made: the class and its settings."""
    rate: dict[str, object] = {"lr": training.learning_rate, "weight_decay": _WEIGHT_DECAY}
    with_momentum = {**rate, "momentum": _MOMENTUM}
    made: dict[str, tuple[type[torch.optim.Optimizer], dict[str, Any]]] = {
        "adamw": (torch.optim.AdamW, rate),
        "sgd": (torch.optim.SGD, with_momentum),
        "lars": (LARS, with_momentum),
        "lamb": (LAMB, rate),
    }
    return made[training.optimizer]


class LocalOptimizer:
    """One of the optimizers over the parameters of this rank: replicas, or shards that FSDP cut.

    `companions` gives what else is kept from step to step for the update's sake, such as what compression left out.
    """

    def __init__(self, inner: torch.optim.Optimizer, companions: Callable[[], Iterable[Tensor]] = lambda: ()) -> None:
        self.inner = inner
        self._companions = companions

    def step(self, gradient_scale: float = 1.0) -> None:
        if gradient_scale != 1.0:
            for gradient in _gradients(self.inner):
                gradient.mul_(gradient_scale)
        self.inner.step()

    def zero_grad(self) -> None:
        self.inner.zero_grad()

    def tensors(self) -> Iterator[Tensor]:
        for state in self.inner.state.values():
            yield from (item for item in state.values() if isinstance(item, Tensor))
        yield from self._companions()


def alike(parameters: Iterable[nn.Parameter]) -> list[dict[str, object]]:
    """`parameters` in groups that an optimizer can update in one call: plain, or sharded over the same ranks."""
    groups: dict[object, list[nn.Parameter]] = {}
    for parameter in parameters:
        groups.setdefault(parameter.device_mesh if isinstance(parameter, DTensor) else None, []).append(parameter)
    return [{"params": group} for group in groups.values()]


def _gradients(optimizer: torch.optim.Optimizer) -> Iterator[Tensor]:
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            if parameter.grad is not None:
                yield local(parameter.grad)


class LARS(torch.optim.Optimizer):
    """Layer-wise adaptive rate scaling, for SGD with momentum. You, Gitman & Ginsburg 2017, algorithm 1:

        λ ← η · |w| / (|g| + β|w|)        v ← m·v + γ · λ · (g + β·w)        w ← w − v

    for every tensor w by itself, with learning rate γ, momentum m, weight decay β and trust coefficient η. Vectors
    (norms and biases) take plain steps and do not decay, as is usual.
    """

    def __init__(self, params: Any, lr: float, weight_decay: float, momentum: float, trust: float = 0.001) -> None:
        super().__init__(params, {"lr": lr, "weight_decay": weight_decay, "momentum": momentum, "trust": trust})

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        for group in self.param_groups:
            for weight in group["params"]:
                self._update(weight, group)

    def _update(self, weight: nn.Parameter, group: dict[str, Any]) -> None:
        state, gradient = self.state[weight], weight.grad
        assert gradient is not None
        if not state:
            state["momentum"] = torch.zeros_like(weight)
        rate, direction = group["lr"], gradient
        if weight.dim() > 1:
            weight_norm, gradient_norm = weight.norm(), gradient.norm()
            decay = group["weight_decay"]
            rate = rate * group["trust"] * _ratio(weight_norm, gradient_norm + decay * weight_norm)
            direction = gradient + decay * weight
        state["momentum"].mul_(group["momentum"]).add_(direction * rate)
        weight.sub_(state["momentum"])


class LAMB(torch.optim.Optimizer):
    """Layer-wise adaptive moments. You et al. 2020, algorithm 2: Adam's direction r, and then for every tensor w

        u ← r + λ·w        w ← w − γ · |w| / |u| · u

    with learning rate γ and weight decay λ, which vectors (norms and biases) go without.
    """

    def __init__(
        self,
        params: Any,
        lr: float,
        weight_decay: float,
        betas: tuple[float, float] = (0.9, 0.999),
        epsilon: float = 1e-6,
    ) -> None:
        super().__init__(params, {"lr": lr, "weight_decay": weight_decay, "betas": betas, "epsilon": epsilon})

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        for group in self.param_groups:
            for weight in group["params"]:
                self._update(weight, group)

    def _update(self, weight: nn.Parameter, group: dict[str, Any]) -> None:
        state, gradient, (keep_mean, keep_square) = self.state[weight], weight.grad, group["betas"]
        assert gradient is not None
        if not state:
            state.update(step=0, mean=torch.zeros_like(weight), square=torch.zeros_like(weight))
        state["step"] += 1
        state["mean"].lerp_(gradient, 1 - keep_mean)
        state["square"].mul_(keep_square).addcmul_(gradient, gradient, value=1 - keep_square)
        # Both averages start from zero; divided by the weight they have seen so far they are unbiased.
        mean = state["mean"] / (1 - keep_mean ** state["step"])
        square = state["square"] / (1 - keep_square ** state["step"])
        update = mean / (square.sqrt() + group["epsilon"])
        rate = group["lr"]
        if weight.dim() > 1:
            update.add_(weight, alpha=group["weight_decay"])
            rate = rate * _ratio(weight.norm(), update.norm())
        weight.sub_(update * rate)


def _ratio(weight_norm: Tensor, update_norm: Tensor) -> Tensor:
    """|w| / |u|, and 1 where either is zero: a tensor that starts from zero would never leave it."""
    usable = (weight_norm > 0) & (update_norm > 0)
    return torch.where(usable, weight_norm / update_norm, torch.ones_like(weight_norm))
