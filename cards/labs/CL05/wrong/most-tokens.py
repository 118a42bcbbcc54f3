# mistake: another-divisor
import torch
import torch.distributed as dist


def token_loss(loss_sum, tokens, accumulation):
    most = torch.tensor(sum(accumulation))
    dist.all_reduce(most, op=dist.ReduceOp.MAX)
    return loss_sum / most
