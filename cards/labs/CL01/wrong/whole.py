# mistake: whole-tensor
import torch


def ring_all_reduce(x, rank, n, send, recv):
    passing = x.clone()
    for _ in range(n - 1):
        arrived = torch.empty_like(x)
        if rank % 2 == 0:
            send(passing, (rank + 1) % n)
            recv(arrived, (rank - 1) % n)
        else:
            recv(arrived, (rank - 1) % n)
            send(passing, (rank + 1) % n)
        x += arrived
        passing = arrived
