"""The naive all-reduce: every rank sends everything to every other, and adds up for itself.

    messages per rank    n−1
    bytes per rank       (n−1) × S        n/2 times what the ring sends
    time                 (n−1) × (α + S/B)

Every sum is computed n times and, where rounding matters, not even alike, for each rank adds in another order: replicas
of a model that were updated with such sums would drift apart.
"""

from __future__ import annotations

import torch
from torch import Tensor

from labs.collectives.wire import Wire


def naive_all_reduce(tensor: Tensor, wire: Wire) -> None:
    """Replace `tensor` (as long on every rank) by the sum over all ranks."""
    own = tensor.clone()  # what the others are to get, while `tensor` grows
    arrived = torch.empty_like(tensor)
    for distance in range(1, wire.ranks):
        to, source = (wire.rank + distance) % wire.ranks, (wire.rank - distance) % wire.ranks
        wire.exchange({to: own}, {source: arrived})
        tensor += arrived
