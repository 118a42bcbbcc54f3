"""How one rank sends to another, and the count of it.

Every reference collective sends through a `Wire` and in no other way. So what a wire has counted is what was sent: the
messages and bytes of this rank, not those of a formula.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch.distributed as dist
from torch import Tensor


class Wire:
    """This rank's place among the others and its messages to them. Empty tensors are not sent, nor waited for."""

    def __init__(self) -> None:
        self.rank, self.ranks = dist.get_rank(), dist.get_world_size()
        self.messages_sent = 0
        self.bytes_sent = 0

    def send(self, tensor: Tensor, to: int) -> None:
        """Send `tensor` to rank `to`, and return when it may be overwritten."""
        self.exchange({to: tensor}, {})

    def receive(self, into: Tensor, source: int) -> None:
        """Wait for what rank `source` sends, and write it over `into`."""
        self.exchange({}, {source: into})

    def exchange(self, outgoing: Mapping[int, Tensor], incoming: Mapping[int, Tensor]) -> None:
        """Send and receive at the same time, and wait for all of it. Both are tensors by the other rank's number.

        At the same time, because in a ring everybody sends: were all to wait until somebody receives, all would wait
        forever. A batch also lets NCCL start both directions as one.
        """
        sends = {to: tensor for to, tensor in outgoing.items() if tensor.numel()}
        calls = [dist.P2POp(dist.isend, tensor, to) for to, tensor in sends.items()]
        calls += [dist.P2POp(dist.irecv, tensor, source) for source, tensor in incoming.items() if tensor.numel()]
        self.messages_sent += len(sends)
        self.bytes_sent += sum(tensor.numel() * tensor.element_size() for tensor in sends.values())
        for work in dist.batch_isend_irecv(calls) if calls else ():
            work.wait()
