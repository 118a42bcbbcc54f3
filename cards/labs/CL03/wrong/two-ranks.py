# mistake: doubled-tail
import torch


def shard_indices(length, epoch, rank, n):
    order = torch.randperm(length, generator=torch.Generator().manual_seed(epoch))
    return order[rank % 2 :: 2]
