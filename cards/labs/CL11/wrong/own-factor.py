# mistake: local-norm, also another-factor
import torch
import torch.distributed as dist


def clip_grad_norm(parameters, max_norm, mesh):
    parameters = [p for p in parameters if p.grad is not None]
    own = sum(p.grad.pow(2).sum() for p in parameters)
    own = torch.as_tensor(own, dtype=torch.float64)
    square = torch.tensor([float(sum(p.grad.pow(2).sum() for p in parameters if p.is_sharded))], dtype=torch.float64)
    dist.all_reduce(square, group=mesh.get_group("tensor"))
    square += sum(p.grad.pow(2).sum() for p in parameters if not p.is_sharded)
    factor = min(1.0, max_norm / (float(own.sqrt()) + 1e-6))
    for p in parameters:
        p.grad *= factor
    return square.sqrt()
