"""The ring: every rank sends to the next one only, and all of them send all the time.

The tensor is cut into n chunks, one for each rank. Take n = 4, and look at chunk 0 during a reduce-scatter:

    step 0    rank 1 sends its chunk 0 to rank 2, which adds its own to it:  1 + 2
    step 1    rank 2 sends that sum to rank 3:                               1 + 2 + 3
    step 2    rank 3 sends it to rank 0, which completes it:                 1 + 2 + 3 + 0

The other chunks go round in the same way, each one rank later. So in every step each rank sends one chunk and receives
one, and no link is ever idle. After n−1 steps rank r has the sum of chunk r. An all-gather then passes the finished
chunks round once more, n−1 steps again. Both together are an all-reduce:

    messages per rank    2(n−1)
    bytes per rank       2(n−1)/n × S        almost 2S, however many ranks there are: this is the least there can be
    time                 2(n−1) × (α + S/nB)

The bytes do not grow with n, but the number of steps does: for small tensors, where α counts, a tree is faster.

A length that n does not divide leaves some chunks one value longer. Rank r does not send chunk r in the first half nor
chunk r+1 in the second, so it sends 2S less these two.

Each chunk is added up in one place, so all ranks end with the same bits, which rounding would not grant otherwise.

Patarasuk & Yuan 2009, "Bandwidth optimal all-reduce algorithms for clusters of workstations", section 3.
"""

from __future__ import annotations

import torch
from torch import Tensor

from labs.collectives.wire import Wire


def ring_all_reduce(tensor: Tensor, wire: Wire) -> None:
    """Replace `tensor` (1-D, as long on every rank) by the sum over all ranks."""
    ring_reduce_scatter(tensor, wire)
    ring_all_gather(tensor, wire)


def ring_reduce_scatter(tensor: Tensor, wire: Wire) -> None:
    """Leave the sum over all ranks in this rank's chunk of `tensor`, and sums of some ranks in the others."""
    chunks = tensor.tensor_split(wire.ranks)
    space = torch.empty_like(chunks[0])  # no chunk is longer than the first
    for step in range(wire.ranks - 1):
        outgoing = chunks[(wire.rank - step - 1) % wire.ranks]
        growing = chunks[(wire.rank - step - 2) % wire.ranks]
        arrived = space[: len(growing)]
        wire.exchange({_next(wire): outgoing}, {_previous(wire): arrived})
        growing += arrived


def ring_all_gather(tensor: Tensor, wire: Wire) -> None:
    """Fill `tensor`, of which this rank has its own chunk, with the chunks of the others."""
    chunks = tensor.tensor_split(wire.ranks)
    for step in range(wire.ranks - 1):
        outgoing = chunks[(wire.rank - step) % wire.ranks]
        incoming = chunks[(wire.rank - step - 1) % wire.ranks]
        wire.exchange({_next(wire): outgoing}, {_previous(wire): incoming})


def _next(wire: Wire) -> int:
    return (wire.rank + 1) % wire.ranks


def _previous(wire: Wire) -> int:
    return (wire.rank - 1) % wire.ranks
