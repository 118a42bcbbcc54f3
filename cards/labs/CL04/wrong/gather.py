# mistake: gathers-all
import torch
import torch.distributed as dist


def average_grads(model):
    n = dist.get_world_size()
    for p in model.parameters():
        grad = torch.zeros_like(p) if p.grad is None else p.grad
        every = [torch.empty_like(grad) for _ in range(n)]
        dist.all_gather(every, grad)
        p.grad = torch.stack(every).mean(0)
