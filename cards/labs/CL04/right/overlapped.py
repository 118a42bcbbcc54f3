# all calls under way at once
import torch
import torch.distributed as dist


def average_grads(model):
    under_way = []
    for p in reversed(list(model.parameters())):
        grad = torch.zeros_like(p.data) if p.grad is None else p.grad / dist.get_world_size()
        p.grad = grad
        under_way.append(dist.all_reduce(grad, async_op=True))
    for work in under_way:
        work.wait()
