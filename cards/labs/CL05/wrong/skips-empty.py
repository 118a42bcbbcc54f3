# mistake: rank-dependent-skip
import torch
import torch.distributed as dist


def token_loss(loss_sum, tokens, accumulation):
    if tokens == 0:
        return loss_sum
    total = torch.tensor(sum(accumulation))
    dist.all_reduce(total)
    return loss_sum * dist.get_world_size() / total
