# mistake: library-call
import torch.distributed as dist


def ring_all_reduce(x, rank, n, send, recv):
    dist.all_reduce(x)
