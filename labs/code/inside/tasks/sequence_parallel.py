"""Run what the learner makes of a tensor-parallel block on a rank's own part of the sequence."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from labs.code.inside.desk import Case, Desk, callable_of

PARTS = ("norm", "column", "row")


class Block(nn.Module):
    """A rank's part of an MLP block: the norm whole, the two matrices cut, the second's bias whole."""

    def __init__(self, width: int, hidden: int, dtype: torch.dtype) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width, dtype=dtype)
        self.column = nn.Linear(width, hidden, dtype=dtype)
        self.row = nn.Linear(hidden, width, dtype=dtype)


def run(learner: ModuleType, desk: Desk) -> None:
    make = callable_of(learner, "sequence_parallel")
    for case in desk.cases():
        _large(make, case) if "large" in case.inputs else _exact(make, case)


def _exact(make: Any, case: Case) -> None:
    given = case.inputs["parameters"]
    hidden, width = given["column.weight"].shape
    block = Block(width, hidden, torch.float64)
    block.load_state_dict(given)
    module = make(block)
    outputs, of_inputs = [], []
    for x, factors in zip(case.inputs["x"], case.inputs["factors"], strict=True):
        x.requires_grad_()
        y = module(x)
        outputs.append(y.detach())
        if y.requires_grad:
            torch.autograd.backward((y * factors).sum())
        of_inputs.append(x.grad)
    module.finish()
    case.result("y", outputs)
    found: dict[str, Tensor | None] = {name: parameter.grad for name, parameter in block.named_parameters()}
    case.result("gradients", {"x": of_inputs} | {name: value for name, value in found.items() if value is not None})


def _large(make: Any, case: Case) -> None:
    """Many tokens in fp32, forward alone: for what is kept for backward."""
    tokens, width, hidden = case.inputs["large"]
    module = make(Block(width, hidden, torch.float32))
    x = torch.ones(tokens, 1, width, requires_grad=True)
    case.note("before")
    y = module(x)
    case.note("after forward")
    case.result("y", list(y.shape))
