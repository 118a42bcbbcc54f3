"""The tree: add up towards rank 0, then send the sum back the way the parts came.

In a binomial tree a rank's parent is its number with the lowest binary 1 taken away. For n = 8:

    000 ── 001
     ├──── 010 ── 011
     └──── 100 ── 101
            └──── 110 ── 111

The leaves send to their parents, these add what comes to their own and send the sum on. After ⌈log2 n⌉ rounds rank 0
has everything; ⌈log2 n⌉ more bring it down again:

    messages         ⌈log2 n⌉ from rank 0, which sends the most: one to each child
    bytes            ⌈log2 n⌉ × S from rank 0
    time             2⌈log2 n⌉ × (α + S/B)

Far fewer steps than the ring's 2(n−1), and so better for small tensors. But whole tensors travel, and most links are
idle most of the time. A library mends this: it cuts the tensor into pieces that follow each other up the tree, and uses
two trees, in which each rank is a leaf of one: then the bytes are 2S as well (Sanders, Speck & Träff 2009; NCCL).

Thakur, Rabenseifner & Gropp 2005, "Optimization of collective communication operations in MPICH", sections 4.2 and 4.5.
"""

from __future__ import annotations

import torch
from torch import Tensor

from labs.collectives.wire import Wire


def tree_all_reduce(tensor: Tensor, wire: Wire) -> None:
    """Replace `tensor` (as long on every rank) by the sum over all ranks."""
    children = _children(wire)
    arrived = torch.empty_like(tensor)
    for child in children:  # those with the fewest ranks below them are ready first
        wire.receive(arrived, child)
        tensor += arrived
    if wire.rank > 0:
        wire.send(tensor, _parent(wire))
        wire.receive(tensor, _parent(wire))
    for child in reversed(children):  # the one with the most ranks below it has the longest way to go
        wire.send(tensor, child)


def _parent(wire: Wire) -> int:
    return wire.rank & (wire.rank - 1)


def _children(wire: Wire) -> list[int]:
    """One for each power of two below the lowest 1 of this rank's number; rank 0 has no 1 to stop at."""
    children, digit = [], 1
    while not wire.rank & digit and wire.rank + digit < wire.ranks:
        children.append(wire.rank + digit)
        digit *= 2
    return children
