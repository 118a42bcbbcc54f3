# tensor_split
import torch


def shard_indices(length, epoch, rank, n):
    g = torch.Generator()
    g.manual_seed(epoch * 7919 + 17)
    return torch.randperm(length, generator=g).tensor_split(n)[rank].tolist()
