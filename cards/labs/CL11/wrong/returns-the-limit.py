# mistake: another-norm
import torch
import torch.distributed as dist


def clip_grad_norm(parameters, max_norm, mesh):
    parameters = [parameter for parameter in parameters if parameter.grad is not None]
    sharded = torch.zeros((), dtype=torch.float64)
    replicated = torch.zeros((), dtype=torch.float64)
    for parameter in parameters:
        (sharded if parameter.is_sharded else replicated).add_(parameter.grad.pow(2).sum())
    dist.all_reduce(sharded, group=mesh.get_group("tensor"))
    norm = (sharded + replicated).sqrt()
    factor = (max_norm / norm).clamp(max=1.0)
    for parameter in parameters:
        parameter.grad *= factor
    return norm * factor
