# mistake: library-call
import torch.distributed as dist


def tree_broadcast(x, root, rank, n, send, recv):
    dist.broadcast(x, root)
