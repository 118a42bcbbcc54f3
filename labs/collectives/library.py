"""What one calls in earnest: the library's own collectives. How it does them is up to it: rings, trees, shared memory.

Its messages are not counted here: it sends them in C++, through no wire of ours.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import Tensor


def prepare(operation: str, tensor: Tensor) -> Callable[[], object]:
    """One of the library's collectives over `tensor` (1-D), ready to be called again and again.

    All but the all-reduce and the broadcast want equal parts: they get `tensor` filled up with zeros to a multiple of
    the ranks. The all-gather begins with one of these parts, the others with all of them.
    """
    rank, ranks = dist.get_rank(), dist.get_world_size()
    part = -(-len(tensor) // ranks)
    whole = torch.cat([tensor, tensor.new_zeros(part * ranks - len(tensor))])
    mine, exchanged = whole[part * rank : part * (rank + 1)].clone(), torch.empty_like(whole)
    calls: dict[str, Callable[[], object]] = {
        "all-reduce": lambda: dist.all_reduce(tensor),
        "all-gather": lambda: dist.all_gather_single(whole, mine),
        "reduce-scatter": lambda: dist.reduce_scatter_single(mine, whole),
        "broadcast": lambda: dist.broadcast(tensor, src=0),
        "all-to-all": lambda: dist.all_to_all_single(exchanged, whole),
    }
    return calls[operation]
