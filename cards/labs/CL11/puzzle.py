import torch
import torch.distributed as dist


def clip_grad_norm(parameters, max_norm, mesh):
    parameters = [parameter for parameter in parameters if parameter.grad is not None]
    tensor = mesh.get_group("tensor")
    sharded, replicated = torch.zeros(2, dtype=torch.float64).unbind()
    pass  # arranged
