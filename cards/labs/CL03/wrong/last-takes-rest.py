# mistake: uneven
import torch


def shard_indices(length, epoch, rank, n):
    order = torch.randperm(length, generator=torch.Generator().manual_seed(epoch))
    size = length // n
    return order[rank * size :] if rank == n - 1 else order[rank * size : (rank + 1) * size]
