# mistake: averaged-twice, also another-divisor
import torch
import torch.distributed as dist


def token_loss(loss_sum, tokens, accumulation):
    both = torch.tensor([float(sum(accumulation)), loss_sum.item()], dtype=torch.float64)
    dist.all_reduce(both)
    mine = loss_sum / both[0]
    return mine + (both[1] / both[0] - mine).detach()
