# mistake: one-ranks-gradients
import torch
import torch.distributed as dist


def average_grads(model):
    for p in model.parameters():
        if p.grad is None:
            p.grad = torch.zeros_like(p)
        dist.broadcast(p.grad, 0)
