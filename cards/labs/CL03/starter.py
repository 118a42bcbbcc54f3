import torch


def shard_indices(length, epoch, rank, n):
    """The indices that `rank` of `n` reads in `epoch`, in order."""
