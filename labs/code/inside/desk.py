"""What a lab's harness has of the judge: the inputs of each case when it is its turn, and a place for the results."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch.distributed as dist
from torch import Tensor

from labs.code.inside import frames
from labs.code.inside.channel import Channel


@dataclass(frozen=True)
class Case:
    """One case as a rank is given it."""

    rank: int
    ranks: int
    inputs: dict[str, Any]
    _channel: Channel

    def result(self, name: str, value: object) -> None:
        """Hand over what came out, for the judge to compare. Raises TypeError where it is nothing that can be."""
        tensors: list[Tensor] = []
        try:
            flat = frames.flatten(value, tensors)
        except TypeError as error:
            raise TypeError(f"{name}: {error}") from None
        specs = [frames.spec_of(tensor) for tensor in tensors]
        self._channel.tell({"kind": "result", "name": name, "value": flat, "sent": specs}, tensors)

    def mark(self, name: str) -> None:
        """Say that something begins or ends now, for the order of things."""
        self._channel.tell({"kind": "mark", "name": name})

    def note(self, name: str, **held: Iterable[Tensor]) -> None:
        """Have the judge look at this process's memory now, and tell it what is held for what: `parameters`,
        `gradients`, `optimizer` and so on, each storage once. The judge goes by the kernel's count; what is told
        here explains it."""
        seen: set[int] = set()
        told = {component: sum(_storages(tensors, seen)) for component, tensors in held.items()}
        self._channel.ask({"kind": "note", "name": name, "held": told})

    def gate(self, name: str) -> Any:
        """What the judge keeps back until now. It notes when it was asked for: nobody can have known it before."""
        return self._channel.ask({"kind": "gate", "name": name})


class Desk:
    """A rank's place at the judge's."""

    def __init__(self, channel: Channel, rank: int, ranks: int) -> None:
        self._channel, self.rank, self.ranks = channel, rank, ranks

    def cases(self) -> Iterator[Case]:
        """The cases, one after the other: no rank is given the next before all are done with this one."""
        while (inputs := self._channel.ask({"kind": "next"})) is not None:
            yield Case(self.rank, self.ranks, inputs, self._channel)


def _storages(tensors: Iterable[Tensor], seen: set[int]) -> Iterator[int]:
    """The bytes of each storage that was not met before."""
    for tensor in tensors:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in seen:
            seen.add(storage.data_ptr())
            yield storage.nbytes()


def callable_of(learner: ModuleType, name: str, *parameters: str) -> Callable[..., Any]:
    """The function or class `name` of the learner's file. `parameters`: those of the starter, where they could be taken
    for one another in another order. Raises Refused."""
    found = getattr(learner, name, None)
    if not callable(found):
        raise Refused(f"solution.py defines no {name}: keep the name and the parameters of the starter")
    own = _parameters(found)
    if own != parameters and sorted(own) == sorted(parameters):
        raise Refused(f"it is called as {name}({', '.join(parameters)}), and yours is {name}({', '.join(own)})")
    return found  # type: ignore[no-any-return]


def _parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    try:
        return tuple(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return ()


class Refused(Exception):
    """The file cannot be used as it is, for a reason its author can do something about."""


def send(tensor: Tensor, to: int) -> None:
    """Send `tensor` to rank `to`; returns when that rank receives it."""
    dist.send(tensor, to)


def recv(tensor: Tensor, source: int) -> None:
    """Receive into `tensor` what rank `source` sends."""
    dist.recv(tensor, source)
