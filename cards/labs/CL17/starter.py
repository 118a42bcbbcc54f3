import torch
import torch.distributed as dist


def moe_dispatch(x, expert, experts):
    """What each token's expert makes of it, in the order of `x`."""
