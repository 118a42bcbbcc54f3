import torch
import torch.distributed as dist


def average_grads(model):
    """One all-reduce a parameter, the same on every rank; a gradient that is missing counts as zeros."""
    for parameter in model.parameters():
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
        dist.all_reduce(parameter.grad)
        parameter.grad /= dist.get_world_size()
