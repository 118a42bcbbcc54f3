# mistake: sends-too-much
import torch
import torch.distributed as dist


def clip_grad_norm(parameters, max_norm, mesh):
    parameters = list(parameters)
    group = mesh.get_group("tensor")
    grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
    own = torch.cat([g.reshape(-1) for p, g in zip(parameters, grads) if p.is_sharded])
    every = [torch.empty_like(own) for _ in range(dist.get_world_size(group))]
    dist.all_gather(every, own.detach(), group=group)
    rest = sum(g.pow(2).sum() for p, g in zip(parameters, grads) if not p.is_sharded)
    norm = (torch.cat(every).pow(2).sum() + rest).sqrt().detach()
    for p in parameters:
        if p.grad is not None:
            p.grad *= min(1.0, max_norm / float(norm))
    return norm
