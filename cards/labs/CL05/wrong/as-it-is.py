# mistake: another-divisor
import torch
import torch.distributed as dist


def token_loss(loss_sum, tokens, accumulation):
    return loss_sum
