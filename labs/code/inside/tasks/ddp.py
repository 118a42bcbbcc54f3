"""Train a gated network under the learner's DDP: some micro-batches without communication, then one with."""

from __future__ import annotations

from contextlib import nullcontext
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from labs.code.inside.desk import Case, Desk, callable_of
from labs.code.inside.gated import gated

LAYERS = 4


class Network(nn.Module):
    """Layers that each ask for their factor in backward, a buffer, and a branch that a micro-batch may leave out."""

    def __init__(self, given: dict[str, Tensor], case: Case) -> None:
        super().__init__()
        self.case = case
        self.place = ""
        for layer in range(LAYERS):
            weight, bias = given[f"weight{layer}"], given[f"bias{layer}"]
            self.register_parameter(f"weight{layer}", nn.Parameter(weight))
            self.register_parameter(f"bias{layer}", nn.Parameter(bias))
        self.register_parameter("branch", nn.Parameter(given["branch"]))
        self.register_buffer("scale", given["scale"])

    def forward(self, x: Tensor, with_branch: bool) -> Tensor:
        scale: Tensor = self.get_buffer("scale")
        for layer in range(LAYERS):
            weight, bias = self.get_parameter(f"weight{layer}"), self.get_parameter(f"bias{layer}")
            x = torch.tanh(x @ weight.T + bias)
            if self.place:
                x = gated(x, self.case, f"{self.place}/layer{layer}")
        if with_branch:
            x = x * self.get_parameter("branch")
        return x * scale


def run(learner: ModuleType, desk: Desk) -> None:
    make = callable_of(learner, "DDP")
    for case in desk.cases():
        network = Network(case.inputs["given"], case)
        wrapped = make(network)
        tensors = {**dict(network.named_parameters()), **dict(network.named_buffers())}
        case.result("replicas", {name: value.detach().clone() for name, value in tensors.items()})
        for step, micro_batches in enumerate(case.inputs["steps"]):
            _step(wrapped, network, case, step, micro_batches)


def _step(wrapped: Any, network: Network, case: Case, step: int, micro_batches: list[dict[str, Any]]) -> None:
    for parameter in network.parameters():
        parameter.grad = None
    for index, each in enumerate(micro_batches):
        is_last = index == len(micro_batches) - 1
        network.place = f"{step}.{index}" if case.inputs["gated"] else ""
        with nullcontext() if is_last else wrapped.no_sync():
            wrapped(each["x"], each["with_branch"]).mean().backward()
    wrapped.finish()
    found = {name: parameter.grad for name, parameter in network.named_parameters()}
    case.result(f"gradients {step}", {name: value.clone() for name, value in found.items() if value is not None})
