"""Call the learner's average_grads on a model whose gradients are the rank's own."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from labs.code.inside.desk import Desk, callable_of


class Model(nn.Module):
    """Parameters as they are given; those under `tied` are one tensor with two names, as an embedding and a head."""

    def __init__(self, given: dict[str, Tensor], tied: dict[str, str]) -> None:
        super().__init__()
        for name, value in given.items():
            self.register_parameter(name, nn.Parameter(value))
        for name, other in tied.items():
            self.register_parameter(name, self.get_parameter(other))


def run(learner: ModuleType, desk: Desk) -> None:
    average_grads = callable_of(learner, "average_grads")
    for case in desk.cases():
        model = Model(case.inputs["parameters"], case.inputs["tied"])
        for name, gradient in case.inputs["gradients"].items():
            model.get_parameter(name).grad = gradient
        average_grads(model)
        found: dict[str, Any] = {name: parameter.grad for name, parameter in model.named_parameters()}
        case.result("gradients", {name: value for name, value in found.items() if isinstance(value, torch.Tensor)})
