"""What gloo does on its own account, and a probe must not take for the training's.

Its threads are late. When a collective is done gloo's thread first wakes the rank that waits, and then lets go of the
tensors, for which it needs the interpreter; but that the rank has by now, and keeps for 5 ms or until it next waits for
something. A buffer that nobody needs any more is there a while longer, at one time and not at another. So before a
watched rank goes on it waits until such a collective has let go.

And some of its work is done where a rank waits, by the rank itself: its reduce-scatter is an all-reduce of a copy, of
which the rank then cuts its piece. NCCL has no such copy; and the probes look away while it is worked on.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

_LET_GO_SECONDS = 0.5  # at most: on a busy machine it takes a while until the other thread's turn


class Gloo:
    """Where its collectives stand. With another backend there is nothing to know.

    is_working: whether this rank is inside a wait, and operations are gloo's own.
    waits: from when to when it was, as Unix times in seconds.
    """

    def __init__(self) -> None:
        self.is_working = False
        self.waits: list[tuple[float, float]] = []
        self._is_used = dist.get_backend() == "gloo"
        self._lent: list[weakref.ref[Tensor]] = []

    def lend(self, func: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments to call collective `func` with in place of `args`: its tensors as aliases of their own. An
        alias ends when gloo lets go of it."""
        if not self._is_used or not _is_waited_for(func, args):
            return args
        return tuple(self._alias(each) for each in args)

    def wait_until_it_let_go(self) -> None:
        """Until it holds nothing of collectives that the rank has waited for."""
        if not self._lent:
            return
        until = time.monotonic() + _LET_GO_SECONDS
        while any(alias() is not None for alias in self._lent) and time.monotonic() < until:
            time.sleep(1e-5)
        self._lent = []

    @contextmanager
    def noticing_its_work(self) -> Iterator[None]:
        """While this is entered, `is_working` is kept up to date."""
        original = dist.Work.wait

        def wait(work: dist.Work, *args: Any, **kwargs: Any) -> Any:
            self.is_working = self._is_used
            started = time.time()
            try:
                return original(work, *args, **kwargs)
            finally:
                self.is_working = False
                if self._is_used:
                    self.waits.append((started, time.time()))

        dist.Work.wait = wait  # type: ignore[method-assign, assignment]
        try:
            yield
        finally:
            dist.Work.wait = original  # type: ignore[method-assign]

    def _alias(self, value: object) -> object:
        if isinstance(value, list):
            return [self._alias(each) for each in value]
        if not isinstance(value, Tensor):
            return value
        alias = value.detach()
        self._lent.append(weakref.ref(alias))
        return alias


def _is_waited_for(func: torch._ops.OpOverload[..., Any], args: tuple[object, ...]) -> bool:
    """Whether the rank waits for the collective at once: what goes on beside its work is held for good reason."""
    names = [argument.name for argument in func._schema.arguments]
    at = names.index("async_op") if "async_op" in names else len(args)
    return at < len(args) and not args[at]
