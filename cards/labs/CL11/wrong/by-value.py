# mistake: several-factors, also another-factor
import torch
import torch.distributed as dist


def clip_grad_norm(parameters, max_norm, mesh):
    parameters = [p for p in parameters if p.grad is not None]
    square = torch.tensor(float(sum(p.grad.pow(2).sum() for p in parameters if p.is_sharded)))
    dist.all_reduce(square, group=mesh.get_group("tensor"))
    square += float(sum(p.grad.pow(2).sum() for p in parameters if not p.is_sharded))
    norm = float(square) ** 0.5
    for p in parameters:
        p.grad.clamp_(-max_norm / 4, max_norm / 4)
    return norm
