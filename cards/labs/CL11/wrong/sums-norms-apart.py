# mistake: norms-added, also another-factor, another-norm
import torch
import torch.distributed as dist


def clip_grad_norm(parameters, max_norm, mesh):
    parameters = [p for p in parameters if p.grad is not None]
    norm = torch.tensor(float(sum(p.grad.pow(2).sum() for p in parameters if p.is_sharded))).sqrt()
    dist.all_reduce(norm, group=mesh.get_group("tensor"))
    norm += float(sum(p.grad.pow(2).sum() for p in parameters if not p.is_sharded)) ** 0.5
    factor = min(1.0, max_norm / (float(norm) + 1e-6))
    for p in parameters:
        p.grad *= factor
    return norm
