"""Accumulate gradients of what the learner's token_loss makes of each micro-batch's loss."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from labs.code.inside.desk import Desk, callable_of

IGNORED = -100  # the label of a token that does not count, as in PyTorch


def run(learner: ModuleType, desk: Desk) -> None:
    token_loss = callable_of(learner, "token_loss", "loss_sum", "tokens", "accumulation")
    for case in desk.cases():
        weight = nn.Parameter(case.inputs["weight"])
        labels = case.inputs["labels"]
        counts = [int((each != IGNORED).sum()) for each in labels]
        shown = torch.zeros((), dtype=torch.float64)
        for x, wanted, tokens in zip(case.inputs["x"], labels, counts, strict=True):
            loss = _one_number(token_loss(loss_sum(weight, x, wanted), tokens, list(counts)))
            if loss.requires_grad:
                torch.autograd.backward(loss)
            shown += loss.detach()
        case.result("gradient", torch.zeros_like(weight) if weight.grad is None else weight.grad)
        case.result("loss", shown)


def _one_number(loss: Any) -> Tensor:
    """What was returned as a scalar, as backward() takes it. Raises TypeError."""
    if isinstance(loss, Tensor) and loss.numel() == 1:
        return loss.to(torch.float64).reshape(())
    if isinstance(loss, int | float):
        return torch.tensor(float(loss), dtype=torch.float64)
    what = f"a tensor of shape {list(loss.shape)}" if isinstance(loss, Tensor) else type(loss).__name__
    raise TypeError(f"token_loss returned {what}; backward() needs a tensor of one value")


def loss_sum(weight: Tensor, x: Tensor, labels: Tensor) -> Tensor:
    """The cross-entropy of a micro-batch's valid tokens, added up."""
    return nn.functional.cross_entropy(x @ weight.T, labels, reduction="sum", ignore_index=IGNORED)
