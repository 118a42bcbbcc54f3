# mistake: data-counted, also another-factor, another-norm
import torch
import torch.distributed as dist


def clip_grad_norm(parameters, max_norm, mesh):
    parameters = [p for p in parameters if p.grad is not None]
    first = mesh.get_local_rank("tensor") == 0
    square = torch.tensor(float(sum(p.grad.pow(2).sum() for p in parameters if p.is_sharded or first)))
    dist.all_reduce(square)
    norm = square.sqrt()
    factor = min(1.0, max_norm / (float(norm) + 1e-6))
    for p in parameters:
        p.grad *= factor
    return norm
