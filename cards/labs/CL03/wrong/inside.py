# mistake: shards-fixed
import torch


def shard_indices(length, epoch, rank, n):
    own = torch.arange(rank, length, n)
    return own[torch.randperm(len(own), generator=torch.Generator().manual_seed(epoch))]
