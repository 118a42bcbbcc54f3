# receive from the parent, then send to the farthest child first
import torch


def tree_broadcast(x, root, rank, n, send, recv):
    me, bit = (rank - root) % n, 1
    got = x
    while bit < n:
        if me & bit:
            got = torch.empty_like(x)
            recv(got, (rank - bit) % n)
            break
        bit *= 2
    bit //= 2
    while bit:
        if me + bit < n:
            send(got, (rank + bit) % n)
        bit //= 2
    return got
