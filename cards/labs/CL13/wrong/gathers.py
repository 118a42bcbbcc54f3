# mistake: logits-gathered
import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy


def vocab_parallel_cross_entropy(logits, target):
    every = [torch.empty_like(logits) for _ in range(dist.get_world_size())]
    dist.all_gather(every, logits.detach())
    every[dist.get_rank()] = logits
    return cross_entropy(torch.cat(every, 1), target, reduction="none")
