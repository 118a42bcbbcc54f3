"""Clip gradients with the learner's clip_grad_norm on a mesh of data and tensor ranks."""

from __future__ import annotations

from types import ModuleType

from torch import nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh

from labs.code.inside.desk import Desk, callable_of


def run(learner: ModuleType, desk: Desk) -> None:
    clip_grad_norm = callable_of(learner, "clip_grad_norm")
    meshes: dict[tuple[int, int], DeviceMesh] = {}
    for case in desk.cases():
        data, tensor = case.inputs["mesh"]
        mesh = meshes.get((data, tensor))
        if mesh is None:
            mesh = meshes[data, tensor] = init_device_mesh("cpu", (data, tensor), mesh_dim_names=("data", "tensor"))
        parameters = {name: nn.Parameter(value) for name, value in case.inputs["parameters"].items()}
        for name, parameter in parameters.items():
            parameter.is_sharded = name in case.inputs["sharded"]  # type: ignore[attr-defined]
            gradient = case.inputs["gradients"].get(name)
            parameter.grad = None if gradient is None else gradient.clone()
        case.result("norm", clip_grad_norm(iter(parameters.values()), case.inputs["max_norm"], mesh))
        found = {name: parameter.grad for name, parameter in parameters.items()}
        case.result("gradients", {name: value for name, value in found.items() if value is not None})
