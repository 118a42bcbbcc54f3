# mistake: not-clipped, also another-factor
import torch
import torch.distributed as dist


def clip_grad_norm(parameters, max_norm, mesh):
    sharded, replicated = torch.zeros(()), torch.zeros(())
    for p in parameters:
        if p.grad is not None:
            (sharded if p.is_sharded else replicated).add_(p.grad.pow(2).sum())
    dist.all_reduce(sharded, group=mesh.get_group("tensor"))
    norm = (sharded + replicated).sqrt()
    for p in parameters:
        if p.grad is not None:
            p.grad *= min(1.0, max_norm / float(norm))
    return norm
