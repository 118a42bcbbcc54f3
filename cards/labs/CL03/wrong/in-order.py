# mistake: not-shuffled
def shard_indices(length, epoch, rank, n):
    return range(rank, length, n)
