# mistake: chunk-index
import torch


def ring_all_reduce(x, rank, n, send, recv):
    chunks = x.tensor_split(n)

    def exchange(outgoing, incoming):
        if rank % 2 == 0:
            send(outgoing, (rank + 1) % n)
            recv(incoming, (rank - 1) % n)
        else:
            recv(incoming, (rank - 1) % n)
            send(outgoing, (rank + 1) % n)

    for step in range(n - 1):
        growing = chunks[(rank + step + 1) % n]
        arrived = torch.empty_like(growing)
        exchange(chunks[(rank + step) % n], arrived)
        growing += arrived
    for step in range(n - 1):
        exchange(chunks[(rank + 1 - step) % n], chunks[(rank - step) % n])
