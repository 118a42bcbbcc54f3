# mistake: not-repeatable
import torch


def shard_indices(length, epoch, rank, n):
    torch.manual_seed(epoch)
    shard_indices.calls = getattr(shard_indices, "calls", 0) + 1
    for _ in range(shard_indices.calls):
        order = torch.randperm(length)
    return order[rank::n]
