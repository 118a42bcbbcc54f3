import torch


def ring_all_reduce(x, rank, n, send, recv):
    """Reduce-scatter around the ring, then all-gather around it."""
    chunks = x.tensor_split(n)
    right, left = (rank + 1) % n, (rank - 1) % n

    def exchange(outgoing, incoming):
        """Even ranks send first, odd ranks receive first: somebody always listens."""
        if rank % 2 == 0:
            send(outgoing, right)
            recv(incoming, left)
        else:
            recv(incoming, left)
            send(outgoing, right)

    for step in range(n - 1):
        growing = chunks[(rank - step - 1) % n]
        arrived = torch.empty_like(growing)
        exchange(chunks[(rank - step) % n], arrived)
        growing += arrived
    for step in range(n - 1):
        exchange(chunks[(rank + 1 - step) % n], chunks[(rank - step) % n])
