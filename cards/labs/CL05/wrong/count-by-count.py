# mistake: sends-too-much
import torch
import torch.distributed as dist


def token_loss(loss_sum, tokens, accumulation):
    total = 0
    for each in accumulation:
        for _ in range(4):
            count = torch.tensor(each)
            dist.all_reduce(count)
        total += int(count)
    return loss_sum * dist.get_world_size() / total
