# mistake: sends-too-much
import torch
import torch.distributed as dist


def token_loss(loss_sum, tokens, accumulation):
    flags = torch.zeros(16 * len(accumulation), dtype=torch.int64)
    for index, count in enumerate(accumulation):
        flags[16 * index : 16 * index + count] = 1
    every = [torch.empty_like(flags) for _ in range(dist.get_world_size())]
    dist.all_gather(every, flags)
    dist.all_gather(every, flags)
    return loss_sum * len(every) / int(torch.stack(every).sum())
