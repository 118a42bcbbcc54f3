# the other way round the ring, rank 0 receiving last
import torch


def ring_all_reduce(x, rank, n, send, recv):
    pieces = torch.tensor_split(x, n)
    to, source = (rank - 1) % n, (rank + 1) % n

    def step(out, buffer):
        if rank == 0:
            send(out, to)
            recv(buffer, source)
        else:
            recv(buffer, source)
            send(out, to)

    for s in range(n - 1):
        into = pieces[(rank + s + 1) % n]
        buffer = torch.empty_like(into)
        out = pieces[(rank + s) % n]
        step(out, buffer)
        into += buffer
    for s in range(n - 1):
        step(pieces[(rank - 1 + s) % n], pieces[(rank + s) % n])
