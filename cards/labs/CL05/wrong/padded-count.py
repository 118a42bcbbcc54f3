# mistake: empty-micro-batch, also another-divisor
import torch
import torch.distributed as dist


def token_loss(loss_sum, tokens, accumulation):
    total = torch.tensor(sum(max(each, 1) for each in accumulation))
    dist.all_reduce(total)
    return loss_sum * dist.get_world_size() / total
