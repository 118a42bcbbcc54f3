"""Have the learner's loss of logits that are cut over the vocabulary, and its gradient."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from labs.code.inside.desk import Desk, callable_of


def run(learner: ModuleType, desk: Desk) -> None:
    cross_entropy = callable_of(learner, "vocab_parallel_cross_entropy")
    for case in desk.cases():
        leaf = case.inputs["logits"].requires_grad_()
        loss: Any = cross_entropy(leaf * 1.0, case.inputs["target"])  # no leaf, so that it may be changed in place
        case.result("loss", loss.detach() if isinstance(loss, Tensor) else loss)
        if isinstance(loss, Tensor) and loss.requires_grad:
            torch.autograd.backward((loss * case.inputs["factors"]).sum())
        case.result("gradient", leaf.grad)
