"""Ask the learner's make_buckets for the buckets of parameters, and reduce a flat tensor for each on all ranks."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from labs.code.inside.desk import Desk, callable_of

UNKNOWN = -1  # what is no parameter of the list


def run(learner: ModuleType, desk: Desk) -> None:
    make_buckets = callable_of(learner, "make_buckets")
    for case in desk.cases():
        every = [_parameter(described) for described in case.inputs["parameters"]]
        given = [every[place] for place in case.inputs["order"]]
        places = {id(parameter): place for place, parameter in enumerate(every)}
        made = [list(bucket) for bucket in make_buckets(list(given), case.inputs["cap_bytes"])]
        case.result("buckets", [[places.get(id(each), UNKNOWN) for each in bucket] for bucket in made])
        for bucket in made:
            tensors = [each for each in bucket if isinstance(each, torch.Tensor)]
            if tensors:
                dist.all_reduce(torch.zeros(sum(each.numel() for each in tensors), dtype=tensors[0].dtype))


def _parameter(described: dict[str, Any]) -> nn.Parameter:
    dtype = torch.bfloat16 if described["bytes_each"] == 2 else torch.float32
    parameter = nn.Parameter(torch.zeros(described["shape"], dtype=dtype), requires_grad=described["trains"])
    if described["has_gradient"]:
        parameter.grad = torch.zeros_like(parameter)
    return parameter
