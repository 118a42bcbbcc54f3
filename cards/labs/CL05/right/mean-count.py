# the mean count of the ranks as the divisor
import torch
import torch.distributed as dist


def token_loss(loss_sum, tokens, accumulation):
    mean = torch.tensor(float(sum(accumulation)), dtype=torch.float64)
    dist.all_reduce(mean, op=dist.ReduceOp.AVG)
    return loss_sum / mean
