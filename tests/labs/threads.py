"""Ranks as threads of one process, which exchange tensors through memory: collectives in milliseconds, for unit tests.

`together(ranks, work)` runs `work(rank)` on every one of them and returns what each returned. While it runs, the
functions of `torch.distributed` that the layers' own parallelism calls do what they promise, over all threads.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar
from unittest import mock

import torch
import torch.distributed as dist
from torch import Tensor

T = TypeVar("T")
_TIMEOUT_SECONDS = 20


def together(ranks: int, work: Callable[[int], T]) -> list[T]:
    """What `work` returned on each of `ranks` threads. Raises what any of them raised."""
    room = _Room(ranks)

    def run(rank: int) -> T:
        room.here.rank = rank
        try:
            return work(rank)
        except BaseException:
            room.barrier.abort()  # nobody waits for one who is gone
            raise

    with mock.patch.multiple(dist, **room.functions()), ThreadPoolExecutor(ranks) as pool:
        running = [pool.submit(run, rank) for rank in range(ranks)]
        errors = [error for each in running if (error := each.exception()) is not None]
        for error in sorted(errors, key=lambda error: isinstance(error, threading.BrokenBarrierError)):
            raise error
        return [each.result() for each in running]


class _Room:
    def __init__(self, ranks: int) -> None:
        self.ranks = ranks
        self.here = threading.local()
        self.barrier = threading.Barrier(ranks, timeout=_TIMEOUT_SECONDS)
        self._table: list[Any] = [None] * ranks

    def functions(self) -> dict[str, Any]:
        names = (
            "all_reduce",
            "all_gather_single",
            "reduce_scatter_single",
            "all_to_all_single",
            "batch_isend_irecv",
        )
        plain = {"get_global_rank": lambda group, rank: rank, "P2POp": lambda *call: call}
        return {name: getattr(self, name) for name in names} | plain

    def _exchange(self, mine: Any) -> list[Any]:
        """Everybody's `mine`, by rank."""
        self._table[self.here.rank] = mine
        self.barrier.wait()
        found = list(self._table)
        self.barrier.wait()
        return found

    def all_reduce(self, tensor: Tensor, op: Any = dist.ReduceOp.SUM, group: Any = None) -> None:
        every = torch.stack(self._exchange(tensor.clone()))
        tensor.copy_(every.amax(dim=0) if op == dist.ReduceOp.MAX else every.sum(dim=0))

    def all_gather_single(self, whole: Tensor, mine: Tensor, group: Any = None) -> None:
        whole.copy_(torch.cat(self._exchange(mine.clone())))

    def reduce_scatter_single(self, mine: Tensor, whole: Tensor, group: Any = None) -> None:
        total = torch.stack(self._exchange(whole.clone())).sum(dim=0)
        mine.copy_(total.chunk(self.ranks)[self.here.rank])

    def all_to_all_single(
        self, out: Tensor, given: Tensor, out_sizes: Any = None, in_sizes: Any = None, group: Any = None
    ) -> None:
        sizes = in_sizes or [len(given) // self.ranks] * self.ranks
        parts = self._exchange(given.clone().split(sizes))
        out.copy_(torch.cat([part[self.here.rank] for part in parts]))

    def batch_isend_irecv(self, calls: list[tuple[Any, ...]]) -> list[Any]:
        sent, received = ({call[2]: call for call in calls if call[0] is kind} for kind in (dist.isend, dist.irecv))
        every = self._exchange({to: (call[1].clone(), call[4]) for to, call in sent.items()})
        for source, call in received.items():
            message, tag = every[source][self.here.rank]
            assert tag == call[4]
            call[1].copy_(message)
        return []
