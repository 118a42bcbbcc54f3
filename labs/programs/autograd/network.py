"""Three layers, and something for them to learn."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn


class ThreeLayers(nn.Sequential):
    """h₁ = tanh(x W₁ᵀ), h₂ = tanh(h₁ W₂ᵀ), h₃ = h₂ W₃ᵀ. Rows are samples: (rows, width) all the way."""

    def __init__(self, width: int, with_batch_norm: bool = False) -> None:
        def hidden() -> list[nn.Module]:
            norm: list[nn.Module] = [nn.BatchNorm1d(width)] if with_batch_norm else []
            return [nn.Linear(width, width, bias=False), *norm, nn.Tanh()]

        super().__init__(*hidden(), *hidden(), nn.Linear(width, width, bias=False))

    @property
    def layers(self) -> list[nn.Linear]:
        return [module for module in self if isinstance(module, nn.Linear)]


@dataclass(frozen=True)
class Task:
    """Rows, and what another network of the same shape makes of them."""

    x: Tensor  # (batch, width)
    y: Tensor

    def pieces(self, parts: int) -> list[Task]:
        return [Task(x, y) for x, y in zip(self.x.chunk(parts), self.y.chunk(parts), strict=True)]


def new_network(
    width: int, seed: int, device: torch.device, dtype: torch.dtype = torch.float32, with_batch_norm: bool = False
) -> ThreeLayers:
    """A network whose weights depend on the seed alone."""
    torch.manual_seed(seed)
    return ThreeLayers(width, with_batch_norm).to(device, dtype)


def new_task(
    batch: int, width: int, seed: int, device: torch.device, dtype: torch.dtype = torch.float32, step: int = 0
) -> Task:
    """`batch` rows from a normal distribution, others for every step, and the same teacher's answers."""
    teacher = new_network(width, seed + 1, device, dtype)
    rows = torch.randn(batch, width, generator=torch.Generator().manual_seed(seed * 1_000_003 + step))
    x = rows.to(device, dtype)
    with torch.no_grad():
        return Task(x, teacher(x))


def losses(network: nn.Module, task: Task) -> Tensor:
    """½‖h₃ − y‖² of every row: (rows,). Its gradient by h₃ is h₃ − y."""
    each: Tensor = 0.5 * (network(task.x) - task.y).square().sum(dim=1)
    return each


def gradients(network: nn.Module) -> list[Tensor]:
    """A copy of every parameter's `.grad`."""
    return [parameter.grad.clone() for parameter in network.parameters() if parameter.grad is not None]


def length(of: list[Tensor]) -> float:
    """Of all of them as one vector."""
    return float(torch.cat([each.flatten() for each in of]).norm())


def difference(computed: list[Tensor], right: list[Tensor]) -> float:
    """The largest difference between two lists of tensors, over the largest value of the second."""
    apart = max(float((one - other).abs().max()) for one, other in zip(computed, right, strict=True))
    return apart / max(float(each.abs().max()) for each in right)
