# one flat buffer, one call
import torch
import torch.distributed as dist


def average_grads(model):
    parameters = list(model.parameters())
    flat = torch.cat([(p.grad if p.grad is not None else torch.zeros_like(p)).reshape(-1) for p in parameters])
    flat /= dist.get_world_size()
    dist.all_reduce(flat)
    for p, part in zip(parameters, flat.split([p.numel() for p in parameters])):
        p.grad = part.reshape(p.shape).clone()
