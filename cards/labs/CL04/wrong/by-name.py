# mistake: tied-twice
import torch
import torch.distributed as dist


def average_grads(model):
    for _, p in model.named_parameters(remove_duplicate=False):
        if p.grad is None:
            p.grad = torch.zeros_like(p)
        dist.all_reduce(p.grad)
        p.grad /= dist.get_world_size()
