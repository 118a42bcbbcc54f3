"""torch.distributed over the judge: a process group whose every call goes through the rank's channel.

To a learner it is `torch.distributed` as always. What a call sends leaves the process, and the judge passes it on; so
what was sent is known where it was carried, whatever is done to this process. A message is a rendezvous, as it is with
NCCL: a send is over when its receive has been called.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch._C._distributed_c10d import HashStore

from labs.code.inside.channel import Channel

BACKEND = "judged"
_OPS = {
    dist.ReduceOp.SUM: "sum",
    dist.ReduceOp.AVG: "avg",
    dist.ReduceOp.MAX: "max",
    dist.ReduceOp.MIN: "min",
    dist.ReduceOp.PRODUCT: "product",
}


class Pending(dist.Work):
    """A call under way."""

    def __init__(self, channel: Channel, number: int, outputs: Sequence[Tensor]) -> None:
        super().__init__()
        self._channel, self._number, self._outputs = channel, number, list(outputs)

    def wait(self, timeout: Any = None) -> bool:
        self._channel.wait(self._number)
        return True

    def is_completed(self) -> bool:
        return self._channel.is_done(self._number)

    def is_success(self) -> bool:
        return self.is_completed()

    def result(self) -> list[Tensor]:
        self.wait()
        return self._outputs

    def get_future(self) -> Any:
        self.wait()
        future: Any = torch.futures.Future()
        future.set_result(self._outputs)
        return future


class JudgedGroup(dist.ProcessGroup):
    """A process group of the ranks `members`, by their numbers in the whole."""

    def __init__(self, channel: Channel, members: Sequence[int], rank: int) -> None:
        super().__init__(rank, len(members))  # type: ignore[call-arg]
        self._channel, self._members = channel, list(members)

    def getBackendName(self) -> str:  # noqa: N802 - torch's name
        return BACKEND

    @property
    def group_name(self) -> Any:
        """As torch registered it; a mesh asks for it."""
        return dist.distributed_c10d._world.pg_names[self]

    def _call(self, operation: str, sent: Sequence[Tensor], outputs: Sequence[Tensor], **more: object) -> Pending:
        header = {"kind": "call", "operation": operation, "group": self._members, **more}
        return Pending(self._channel, self._channel.post(header, sent, outputs), outputs)

    def allreduce(self, tensors: list[Tensor], opts: Any = None) -> Pending:  # type: ignore[override]
        return self._call("all_reduce", tensors, tensors, reduce=_op(opts))

    def allreduce_coalesced(self, tensors: list[Tensor], opts: Any = None) -> Pending:
        return self._call("all_reduce", tensors, tensors, reduce=_op(opts))

    def reduce(self, tensors: list[Tensor], opts: Any = None) -> Pending:  # type: ignore[override]
        outputs = tensors if opts.rootRank == self.rank() else []
        return self._call("reduce", tensors, outputs, reduce=_op(opts), root=opts.rootRank)

    def broadcast(self, tensors: list[Tensor], opts: Any = None) -> Pending:  # type: ignore[override]
        is_root = opts.rootRank == self.rank()
        return self._call("broadcast", tensors if is_root else [], [] if is_root else tensors, root=opts.rootRank)

    def allgather(self, outputs: list[list[Tensor]], inputs: list[Tensor], opts: Any = None) -> Pending:  # type: ignore[override]
        return self._call("all_gather", inputs, outputs[0])

    def all_gather_single(self, output: Tensor, given: Tensor, opts: Any = None) -> Pending:
        return self._call("all_gather", [given], [output])

    def reduce_scatter(self, outputs: list[Tensor], inputs: list[list[Tensor]], opts: Any = None) -> Pending:  # type: ignore[override]
        return self._call("reduce_scatter", inputs[0], outputs, reduce=_op(opts))

    def reduce_scatter_single(self, output: Tensor, given: Tensor, opts: Any = None) -> Pending:
        return self._call("reduce_scatter", [given], [output], reduce=_op(opts))

    def all_to_all_single(
        self, output: Tensor, given: Tensor, output_splits: list[int], input_splits: list[int], opts: Any = None
    ) -> Pending:
        splits = {"output_splits": list(output_splits or ()), "input_splits": list(input_splits or ())}
        return self._call("all_to_all", [given], [output], **splits)

    def alltoall(self, outputs: list[Tensor], inputs: list[Tensor], opts: Any = None) -> Pending:
        return self._call("all_to_all", inputs, outputs)

    def scatter(self, outputs: list[Tensor], inputs: list[list[Tensor]], opts: Any = None) -> Pending:  # type: ignore[override]
        return self._call("scatter", inputs[0] if inputs else [], outputs, root=opts.rootRank)

    def gather(self, outputs: list[list[Tensor]], inputs: list[Tensor], opts: Any = None) -> Pending:  # type: ignore[override]
        return self._call("gather", inputs, outputs[0] if outputs else [], root=opts.rootRank)

    def barrier(self, opts: Any = None) -> Pending:
        return self._call("barrier", [], [])

    def send(self, tensors: list[Tensor], to: int, tag: int = 0) -> Pending:
        return self._call("send", tensors, [], peer=self._other(to), tag=tag)

    def recv(self, tensors: list[Tensor], source: int, tag: int = 0) -> Pending:
        return self._call("recv", [], tensors, peer=self._other(source), tag=tag)

    def _other(self, place: int) -> int:
        """The rank at this place of the group, which a message goes to or comes from. Raises ValueError."""
        if not 0 <= place < len(self._members):
            raise ValueError(f"there is no rank {place} in a group of {len(self._members)}")
        if place == self.rank():
            raise ValueError(f"rank {place} cannot send to itself, nor receive from itself")
        return self._members[place]


def _op(opts: Any) -> str:
    kind = opts.reduceOp if opts is not None else dist.ReduceOp.SUM
    for known, name in _OPS.items():
        if kind == known:
            return name
    raise RuntimeError(f"{kind} is not among the reductions here: {', '.join(_OPS.values())}")


def join(channel: Channel, rank: int, ranks: int) -> None:
    """Make `torch.distributed` this channel's, with a process group of all ranks."""

    def make(options: Any, _: object) -> JudgedGroup:
        members = list(options.global_ranks_in_group) or list(range(ranks))
        return JudgedGroup(channel, members, options.group_rank)

    if BACKEND not in dist.Backend.backend_list:
        dist.Backend.register_backend(BACKEND, make, extended_api=True, devices=["cpu"])
    dist.init_process_group(BACKEND, store=HashStore(), rank=rank, world_size=ranks)
