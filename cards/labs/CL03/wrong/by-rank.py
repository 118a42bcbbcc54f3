# mistake: ranks-disagree, also doubled-tail, lost-tail
import torch


def shard_indices(length, epoch, rank, n):
    g = torch.Generator().manual_seed(epoch * 100 + rank)
    return torch.randperm(length, generator=g)[rank::n]
