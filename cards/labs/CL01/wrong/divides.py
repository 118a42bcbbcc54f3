# mistake: mean-for-sum, also what-arrives
import torch


def ring_all_reduce(x, rank, n, send, recv):
    chunks = x.tensor_split(n)
    for step in range(2 * (n - 1)):
        target = chunks[(rank - step - 1) % n]
        arrived = torch.empty_like(target)
        if rank % 2 == 0:
            send(chunks[(rank - step) % n], (rank + 1) % n)
            recv(arrived, (rank - 1) % n)
        else:
            recv(arrived, (rank - 1) % n)
            send(chunks[(rank - step) % n], (rank + 1) % n)
        if step < n - 1:
            target += arrived
        else:
            target.copy_(arrived)
    x /= n
