# mistake: asks-others
import torch
import torch.distributed as dist


def shard_indices(length, epoch, rank, n):
    order = torch.randperm(length, generator=torch.Generator().manual_seed(epoch))
    dist.broadcast(order, 0)
    return order[rank::n]
