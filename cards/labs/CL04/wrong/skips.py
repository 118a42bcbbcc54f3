# mistake: rank-dependent-skip, also order-differs
import torch.distributed as dist


def average_grads(model):
    for p in model.parameters():
        if p.grad is not None:
            dist.all_reduce(p.grad)
            p.grad /= dist.get_world_size()
