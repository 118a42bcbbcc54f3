import torch


def shard_indices(length, epoch, rank, n):
    """One permutation an epoch, the same on every rank, dealt in turn."""
    generator = torch.Generator().manual_seed(epoch)
    return torch.randperm(length, generator=generator)[rank::n]
