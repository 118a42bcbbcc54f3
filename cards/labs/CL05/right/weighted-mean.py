# the mean of the micro-batch, weighted by its share of all tokens
import torch
import torch.distributed as dist


def token_loss(loss_sum, tokens, accumulation):
    counts = [torch.zeros(len(accumulation), dtype=torch.int64) for _ in range(dist.get_world_size())]
    dist.all_gather(counts, torch.tensor(accumulation))
    share = tokens / int(torch.stack(counts).sum())
    mean = loss_sum / max(tokens, 1)
    return mean * share * dist.get_world_size()
