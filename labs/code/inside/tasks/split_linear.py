"""Run the learner's ColumnLinear and RowLinear as the two halves of an MLP, forward and backward."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import gelu

from labs.code.inside.desk import Case, Desk, callable_of


def run(learner: ModuleType, desk: Desk) -> None:
    makers = callable_of(learner, "ColumnLinear"), callable_of(learner, "RowLinear")
    for case in desk.cases():
        _large(makers, case) if "large" in case.inputs else _exact(makers, case)


def _exact(makers: tuple[Any, Any], case: Case) -> None:
    given = case.inputs
    column, row = (
        make(given[f"{name}.weight"], given[f"{name}.bias"]) for make, name in zip(makers, NAMES, strict=True)
    )
    case.result(
        "shapes", {f"{name}.weight": list(each.weight.shape) for name, each in zip(NAMES, (column, row), strict=True)}
    )
    x = given["x"].requires_grad_(given["with_gradient"])
    y = row(gelu(column(x)))
    y = y + x if given["residual"] else y
    case.result("y", y.detach())
    if y.requires_grad:
        torch.autograd.backward((y * given["factors"]).sum())
    found: dict[str, Tensor | None] = {"x": x.grad}
    for name, each in zip(NAMES, (column, row), strict=True):
        found |= {f"{name}.weight": each.weight.grad, f"{name}.bias": getattr(each.bias, "grad", None)}
    case.result("gradients", {name: value for name, value in found.items() if value is not None})


NAMES = ("column", "row")


def _large(makers: tuple[Any, Any], case: Case) -> None:
    """Large weights in fp32: for what is held after the layers are made."""
    size = case.inputs["large"]
    case.note("before")
    layers = [make(torch.full((size, size), 0.5), None) for make in makers]
    case.note("layers made", parameters=[layer.weight for layer in layers])
    case.result("made", len(layers))
