# mistake: whole-tensor
import torch


def ring_all_reduce(x, rank, n, send, recv):
    if rank:
        send(x, 0)
        recv(x, 0)
        return
    for source in range(1, n):
        arrived = torch.empty_like(x)
        recv(arrived, source)
        x += arrived
    for to in range(1, n):
        send(x, to)
