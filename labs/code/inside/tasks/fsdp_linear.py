"""Train a stack of the learner's FSDPLinear layers on each rank's own rows."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from labs.code.inside.desk import Case, Desk, callable_of


def run(learner: ModuleType, desk: Desk) -> None:
    make = callable_of(learner, "FSDPLinear")
    for case in desk.cases():
        _large(make, case) if "large" in case.inputs else _exact(make, case)


def _exact(make: Any, case: Case) -> None:
    """A few steps of plain gradient descent; then whole weights and biases."""
    given = case.inputs
    dtype = getattr(torch, given["dtype"])
    layers = [make(linear(weight, bias), dtype) for weight, bias in zip(given["weights"], given["biases"], strict=True)]
    parameters = [parameter for layer in layers for parameter in layer.parameters()]
    for x, target in zip(given["x"], given["targets"], strict=True):
        for parameter in parameters:
            parameter.grad = None
        out = through(layers, x.to(dtype))
        torch.autograd.backward(((out - target.to(dtype)) ** 2).sum())
        with torch.no_grad():
            for parameter in parameters:
                if parameter.grad is not None:
                    parameter.sub_(given["rate"] * parameter.grad)
    whole = [layer.full() for layer in layers]
    case.result("weights", [weight.detach() for weight, _ in whole])
    case.result("biases", [bias.detach() for _, bias in whole])


def _large(make: Any, case: Case) -> None:
    """Large layers in fp32, one step: for what is held, not for what comes out."""
    count, width = case.inputs["large"]
    case.note("before")
    layers = [
        make(linear(torch.full((width, width), 1 / width), torch.zeros(width)), torch.float32) for _ in range(count)
    ]
    case.note("made")
    out = through(layers, torch.ones(4, width))
    case.note("after forward")
    torch.autograd.backward(out.sum())
    case.result("weights", bool(out.detach().isfinite().all()))
    case.result("biases", True)


def linear(weight: Tensor, bias: Tensor) -> nn.Linear:
    """An `nn.Linear` of these values."""
    made = nn.Linear(1, 1, dtype=weight.dtype)
    made.weight, made.bias = nn.Parameter(weight), nn.Parameter(bias)
    made.out_features, made.in_features = weight.shape
    return made


def through(layers: list[Any], x: Tensor) -> Tensor:
    """One layer after the other, with a tanh between."""
    for number, layer in enumerate(layers):
        x = layer(x if number == 0 else x.tanh())
    return x
