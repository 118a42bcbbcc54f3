"""Train with the learner's Zero2, which sees each rank's own gradients as backward makes them."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from labs.code.inside.desk import Case, Desk, callable_of


def run(learner: ModuleType, desk: Desk) -> None:
    make = callable_of(learner, "Zero2")
    for case in desk.cases():
        _large(make, case) if "large" in case.inputs else _exact(make, case)


def _exact(make: Any, case: Case) -> None:
    """Small parameters in fp64, several steps of this rank's own gradients."""
    given = case.inputs
    parameters = {name: nn.Parameter(value) for name, value in given["parameters"].items()}
    if given["groups"] is None:
        optimizer = make(iter(parameters.values()), torch.optim.SGD, **given["options"])
    else:
        groups = [{**each, "params": [parameters[name] for name in each["params"]]} for each in given["groups"]]
        optimizer = make(groups, torch.optim.SGD, **given["options"])
    for gradients in given["gradients"]:
        _clear(parameters)
        torch.autograd.backward(_loss(parameters, gradients))
        optimizer.step()
    case.result("parameters", {name: parameter.data for name, parameter in parameters.items()})


def _clear(parameters: Mapping[str, nn.Parameter]) -> None:
    for parameter in parameters.values():
        parameter.grad = None


def _loss(parameters: Mapping[str, nn.Parameter], gradients: Mapping[str, Tensor]) -> Tensor:
    """What has these gradients; a parameter that has none is not in it."""
    return torch.stack([(parameters[name] * gradient).sum() for name, gradient in gradients.items()]).sum()


def _large(make: Any, case: Case) -> None:
    """Large parameters in fp32, one step: for what is held, not for what comes out."""
    count, size = case.inputs["large"]
    parameters = [nn.Parameter(torch.ones(size)) for _ in range(count)]
    case.note("before")
    optimizer = make(parameters, torch.optim.SGD, lr=0.1, momentum=0.9)
    case.note("made", parameters=parameters)
    torch.autograd.backward(torch.stack([(parameter * 0.5).sum() for parameter in parameters]).sum())
    case.note("after backward", parameters=parameters, gradients=_gradients(parameters))
    optimizer.step()
    case.note("after a step", parameters=parameters, gradients=_gradients(parameters))
    moved = [bool((parameter != 1.0).all()) for parameter in parameters]
    case.result("parameters", {"moved": moved})


def _gradients(parameters: list[nn.Parameter]) -> list[Tensor]:
    return [parameter.grad for parameter in parameters if parameter.grad is not None]
