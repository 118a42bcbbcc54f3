# mistake: order-differs
import torch
import torch.distributed as dist


def average_grads(model):
    present = [p for p in model.parameters() if p.grad is not None]
    for p in sorted(present, key=lambda p: float(p.grad.norm())):
        dist.all_reduce(p.grad)
        p.grad /= dist.get_world_size()
