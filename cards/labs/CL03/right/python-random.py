# Python's random, consecutive pieces
import random


def shard_indices(length, epoch, rank, n):
    order = list(range(length))
    random.Random(1000 + epoch).shuffle(order)
    return order[rank * length // n : (rank + 1) * length // n]
