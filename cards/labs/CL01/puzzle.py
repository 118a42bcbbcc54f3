import torch


def ring_all_reduce(x, rank, n, send, recv):
    chunks = x.tensor_split(n)
    right, left = (rank + 1) % n, (rank - 1) % n
    for step in range(2 * (n - 1)):
        pass  # arranged
