import torch


def tree_broadcast(x, root, rank, n, send, recv):
    """Leave what rank root has in x, on every rank.

    x: this rank's tensor, one-dimensional, as long on every rank.
    send(tensor, to): returns when rank `to` receives it.
    recv(tensor, source): waits for a tensor of this length from rank `source`.
    """
