# flags first, so that what no rank has stays None
import torch
import torch.distributed as dist


def average_grads(model):
    parameters = list(model.parameters())
    has = torch.tensor([p.grad is not None for p in parameters], dtype=torch.uint8)
    dist.all_reduce(has, op=dist.ReduceOp.MAX)
    for flag, p in zip(has.tolist(), parameters):
        if not flag:
            continue
        if p.grad is None:
            p.grad = torch.zeros_like(p)
        dist.all_reduce(p.grad, op=dist.ReduceOp.AVG)
