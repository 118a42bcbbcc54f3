# mistake: divided-twice
import torch
import torch.distributed as dist


def average_grads(model):
    for p in model.parameters():
        grad = torch.zeros_like(p) if p.grad is None else p.grad / dist.get_world_size()
        dist.all_reduce(grad, op=dist.ReduceOp.AVG)
        p.grad = grad
