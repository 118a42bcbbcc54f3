# mistake: data-counted, also another-factor, another-norm
import torch
import torch.distributed as dist


def clip_grad_norm(parameters, max_norm, mesh):
    parameters = [p for p in parameters if p.grad is not None]
    total = torch.zeros((), dtype=torch.float64)
    for p in parameters:
        if p.is_sharded:
            total += p.grad.double().pow(2).sum()
    dist.all_reduce(total)
    for p in parameters:
        if not p.is_sharded:
            total += p.grad.double().pow(2).sum()
    norm = total.sqrt()
    if norm > max_norm:
        for p in parameters:
            p.grad.mul_(max_norm / norm)
    return norm
