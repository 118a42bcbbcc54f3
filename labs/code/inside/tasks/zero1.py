"""Train with the learner's Zero1 on gradients that are averaged already."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import torch
from torch import nn

from labs.code.inside.desk import Case, Desk, callable_of


def run(learner: ModuleType, desk: Desk) -> None:
    make = callable_of(learner, "Zero1")
    for case in desk.cases():
        _large(make, case) if "large" in case.inputs else _exact(make, case)


def _exact(make: Any, case: Case) -> None:
    """Small parameters in fp64, given gradients, several steps."""
    given = case.inputs
    parameters = {name: nn.Parameter(value) for name, value in given["parameters"].items()}
    if given["groups"] is None:
        optimizer = make(iter(parameters.values()), torch.optim.AdamW, **given["options"])
    else:
        groups = [{**each, "params": (parameters[name] for name in each["params"])} for each in given["groups"]]
        optimizer = make(groups, torch.optim.AdamW, **given["options"])
    for gradients in given["gradients"]:
        for name, parameter in parameters.items():
            parameter.grad = gradients[name].clone() if name in gradients else None
        optimizer.step()
    case.result("parameters", {name: parameter.data for name, parameter in parameters.items()})


def _large(make: Any, case: Case) -> None:
    """Large parameters in fp32, a group for each, one step: for what is held, not for what comes out."""
    count, size = case.inputs["large"]
    parameters = [nn.Parameter(torch.ones(size)) for _ in range(count)]
    for parameter in parameters:
        parameter.grad = torch.full_like(parameter, 0.5)
    case.note("before")
    groups = [{"params": [parameter], "lr": 0.1 / (1 + n)} for n, parameter in enumerate(parameters)]
    optimizer = make(groups, torch.optim.AdamW, lr=0.1)
    optimizer.step()
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    case.note("after a step", parameters=parameters, gradients=gradients)
    moved = [bool((parameter != 1.0).all()) for parameter in parameters]
    case.result("parameters", {"moved": moved})
