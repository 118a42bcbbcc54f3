"""Sees every operation of a watched step below autograd, forward and backward, and the collectives among them."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.distributed.tensor import DTensor
from torch.utils._python_dispatch import TorchDispatchMode

from labs.probes.communication import Ledger
from labs.probes.gloo import Gloo
from labs.probes.history import Life
from labs.probes.memory import MemoryTracker
from labs.probes.operations import Operations


class Watch(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Tells memory, ledger and operations, where they are there, of what passes by; computes nothing with it."""

    def __init__(
        self, memory: MemoryTracker | None, ledger: Ledger | None, operations: Operations | None = None
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._memory = memory
        self._ledger = ledger
        self._operations = operations
        self._filled: dict[int, list[Life]] = {}  # by the storage of a payload: the lives of what its collective fills
        # By the storage of a payload: the lives of what was copied into it. The tensors themselves would stay alive.
        self._gathered_into: dict[int, list[Life]] = {}
        self.gloo = Gloo()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if any(issubclass(kind, DTensor) for kind in types):  # it becomes operations on local tensors, seen here again
            return NotImplemented
        if self.gloo.is_working:
            return func(*args, **(kwargs or {}))
        if self._memory is not None:
            self.gloo.wait_until_it_let_go()
            if func.namespace == "c10d":
                args = self.gloo.lend(func, args)
        if self._ledger is not None and func.namespace == "c10d":
            result = self._ledger.call(func, args, kwargs or {})
            if self._memory is not None:
                self._follow_payload(self._memory, self._ledger, func, args)
        elif self._operations is not None and not func.namespace.endswith("c10d_functional"):
            result = self._operations.call(func, args, kwargs or {})
        else:
            result = func(*args, **(kwargs or {}))
        if self._memory is not None:
            self._memory.see(result)
            if func.namespace == "fsdp":
                self._follow_copies(self._memory, func, args, kwargs or {})
        return result

    def _follow_payload(self, memory: MemoryTracker, ledger: Ledger, func: Any, args: tuple[Any, ...]) -> None:
        """What the collective fills or sends from is there because of it."""
        payload = ledger.payload_of(func, args)
        if not payload:
            return
        lives = memory.follow(payload)
        for each in payload:
            lives += self._gathered_into.pop(_storage(each), [])
            self._filled[_storage(each)] = lives
        ledger.newest.lives = lives

    def _follow_copies(self, memory: MemoryTracker, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """FSDP gathers into one buffer, and copies the parameters out of it; what it reduces it copies into one."""
        if func._opname == "split_with_sizes_copy":
            lives = self._filled.get(_storage(args[0]))
            if lives is not None:
                lives += memory.follow(kwargs["out"])
        elif func._opname == "chunk_cat":
            self._gathered_into[_storage(kwargs["out"])] = memory.follow(args[0])


def _storage(tensor: Tensor) -> int:
    return tensor.untyped_storage()._cdata  # type: ignore[no-any-return]
