# mistake: kept-its-own
import torch


def tree_broadcast(x, root, rank, n, send, recv):
    me = (rank - root) % n
    mine = x.clone()
    reach = 1
    while reach < n:
        if me < reach and me + reach < n:
            send(mine, (me + reach + root) % n)
        elif reach <= me < 2 * reach:
            recv(mine, (me - reach + root) % n)
        reach *= 2
