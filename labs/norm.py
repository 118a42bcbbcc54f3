"""The RMS norm: a norm that only scales."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable

_EPSILON = 1e-5


class RMSNorm(nn.Module):
    """x / √(mean of x²) × a weight for each value: LayerNorm without the mean and without a bias.

    Zhang & Sennrich 2019, section 3. In one function, which keeps its input and one number a token for backward, as the
    fused kernels of LayerNorm and of a GPU's RMS norm do. Operation by operation it would keep the scaled values too.
    """

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, H), every token by itself."""
        normed: Tensor = _Scaled.apply(x, self.weight)  # type: ignore[no-untyped-call]
        return normed


class _Scaled(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        wide = x.to(torch.promote_types(x.dtype, torch.float32))  # sums of 16-bit values are taken in 32
        scale = (wide.square().mean(dim=-1, keepdim=True) + _EPSILON).rsqrt()
        ctx.save_for_backward(x, weight, scale)
        return (wide * scale * weight).to(x.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        """For n = x · scale and its gradient g = gradient · weight, that of x is scale · (g − n · mean of g · n)."""
        x, weight, scale = ctx.saved_tensors
        normed, wide = x.to(scale.dtype) * scale, gradient.to(scale.dtype)
        of_weight = (wide * normed).flatten(0, -2).sum(dim=0)
        of_normed = wide * weight
        of_x = scale * (of_normed - normed * (of_normed * normed).mean(dim=-1, keepdim=True))
        return of_x.to(x.dtype), of_weight.to(weight.dtype)
