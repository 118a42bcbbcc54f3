# mistake: what-arrives
import torch


def ring_all_reduce(x, rank, n, send, recv):
    chunks = x.tensor_split(n)
    for step in range(2 * (n - 1)):
        growing = chunks[(rank - step - 1) % n]
        arrived = torch.empty_like(growing)
        if rank % 2 == 0:
            send(chunks[(rank - step) % n], (rank + 1) % n)
        recv(arrived, (rank - 1) % n)
        if rank % 2 == 1:
            send(chunks[(rank - step) % n], (rank + 1) % n)
        growing += arrived
