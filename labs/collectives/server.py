"""The parameter server: rank 0 collects, adds up, and sends the sum back to everyone.

    messages         n−1 from the server, 1 from each of the others
    bytes            (n−1) × S from the server, S from each of the others
    time             2(n−1) × (α + S/B)

A worker has less to do than in any other scheme, but all n−1 of them wait for one link. More servers, each with a part
of the tensor, divide that load; with as many servers as workers it comes to what a ring sends.

Li et al. 2014, "Scaling distributed machine learning with the parameter server".
"""

from __future__ import annotations

import torch
from torch import Tensor

from labs.collectives.wire import Wire

_SERVER = 0


def server_all_reduce(tensor: Tensor, wire: Wire) -> None:
    """Replace `tensor` (as long on every rank) by the sum over all ranks."""
    if wire.rank == _SERVER:
        _serve(tensor, wire)
    else:
        wire.send(tensor, _SERVER)
        wire.receive(tensor, _SERVER)


def _serve(tensor: Tensor, wire: Wire) -> None:
    workers = range(1, wire.ranks)
    arrived = torch.empty_like(tensor)
    for worker in workers:
        wire.receive(arrived, worker)
        tensor += arrived
    for worker in workers:
        wire.send(tensor, worker)
