# mistake: graph-lost
import torch
import torch.distributed as dist


def token_loss(loss_sum, tokens, accumulation):
    total = torch.tensor(sum(accumulation))
    dist.all_reduce(total)
    return torch.tensor(loss_sum.item() * dist.get_world_size()) / total
