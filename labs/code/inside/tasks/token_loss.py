"""Accumulate gradients of what the learner's token_loss makes of each micro-batch's loss."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from labs.code.inside.desk import Desk, callable_of

IGNORED = -100  # the label of a token that does not count, as in PyTorch


def run(learner: ModuleType, desk: Desk) -> None:
    token_loss = callable_of(learner, "token_loss")
    for case in desk.cases():
        weight = nn.Parameter(case.inputs["weight"])
        labels = case.inputs["labels"]
        counts = [int((each != IGNORED).sum()) for each in labels]
        shown = torch.zeros((), dtype=torch.float64)
        for x, wanted, tokens in zip(case.inputs["x"], labels, counts, strict=True):
            loss: Any = token_loss(loss_sum(weight, x, wanted), tokens, list(counts))
            if isinstance(loss, Tensor) and loss.requires_grad:
                torch.autograd.backward(loss)
            shown += torch.as_tensor(loss, dtype=torch.float64).detach()
        case.result("gradient", torch.zeros_like(weight) if weight.grad is None else weight.grad)
        case.result("loss", shown)


def loss_sum(weight: Tensor, x: Tensor, labels: Tensor) -> Tensor:
    """The cross-entropy of a micro-batch's valid tokens, added up."""
    return nn.functional.cross_entropy(x @ weight.T, labels, reduction="sum", ignore_index=IGNORED)
