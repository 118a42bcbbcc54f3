# mistake: missing-gradient
import torch
import torch.distributed as dist


def average_grads(model):
    for p in model.parameters():
        had = p.grad is not None
        grad = p.grad if had else torch.zeros_like(p)
        dist.all_reduce(grad)
        if had:
            p.grad = grad / dist.get_world_size()
