# over all ranks, each square divided by how many ranks hold it
import torch
import torch.distributed as dist


def clip_grad_norm(parameters, max_norm, mesh):
    parameters = [p for p in parameters if p.grad is not None]
    data, tensor = mesh.size(0), mesh.size(1)
    square = sum((p.grad.double() ** 2).sum() / (data if p.is_sharded else data * tensor) for p in parameters)
    square = torch.as_tensor(square, dtype=torch.float64)
    dist.all_reduce(square)
    norm = square.sqrt()
    for p in parameters:
        p.grad.mul_(min(1.0, float(max_norm / norm)))
    return norm
