# mistake: lost-tail
import torch


def shard_indices(length, epoch, rank, n):
    order = torch.randperm(length, generator=torch.Generator().manual_seed(epoch))
    size = length // n
    return order[rank * size : (rank + 1) * size]
