# mistake: half-way
import torch


def ring_all_reduce(x, rank, n, send, recv):
    chunks = x.tensor_split(n)
    for step in range(n - 1):
        growing = chunks[(rank - step - 1) % n]
        arrived = torch.empty_like(growing)
        if rank % 2:
            recv(arrived, (rank - 1) % n)
            send(chunks[(rank - step) % n], (rank + 1) % n)
        else:
            send(chunks[(rank - step) % n], (rank + 1) % n)
            recv(arrived, (rank - 1) % n)
        growing.add_(arrived)
    return x
