# mistake: doubled-tail
import torch


def shard_indices(length, epoch, rank, n):
    order = torch.randperm(length, generator=torch.Generator().manual_seed(epoch)).tolist()
    while len(order) % n:
        order.append(order[len(order) - length])
    return order[rank::n]
