# copies counted on the first tensor rank alone
import torch
import torch.distributed as dist


def clip_grad_norm(parameters, max_norm, mesh):
    parameters = [p for p in parameters if p.grad is not None]
    first = mesh.get_local_rank("tensor") == 0
    square = torch.zeros(1)
    for p in parameters:
        if p.is_sharded or first:
            square += p.grad.float().norm() ** 2
    dist.all_reduce(square, group=mesh.get_group("tensor"))
    norm = float(square) ** 0.5
    if norm > max_norm:
        for p in parameters:
            p.grad = p.grad * (max_norm / norm)
    return norm
