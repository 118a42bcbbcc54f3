"""Have the learner's `save` write what some ranks hold, train on over it, and have `load` cut it for other ranks."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

import torch.distributed as dist
from torch import Tensor

from labs.code.inside.desk import Desk, callable_of

OVERWRITTEN = -7.0  # what training that goes on leaves in the place of what was saved
_MEASURED = (Tensor, int, float, bool, str)


def run(learner: ModuleType, desk: Desk) -> None:
    save, load = callable_of(learner, "save"), callable_of(learner, "load")
    for case in desk.cases():
        state, writers, readers = case.inputs["state"], case.inputs["writers"], case.inputs["readers"]
        written: Any = None
        if desk.rank < writers:
            written = save(state, desk.rank, writers)
            for value in state.values():
                if isinstance(value, Tensor):
                    value.fill_(OVERWRITTEN if value.is_floating_point() else 0)
            case.result("bytes", _bytes(written))
        files: list[Any] = [None] * desk.ranks
        dist.all_gather_object(files, written)
        if desk.rank < readers:
            case.result("state", _plain(load(files[:writers], desk.rank, readers)))


def _bytes(written: object) -> int:
    """How large a file would be: tensors by their values, whatever else a little."""
    if isinstance(written, Tensor):
        return written.numel() * written.element_size()
    if isinstance(written, Mapping):
        return sum(_bytes(each) for each in written.values())
    if isinstance(written, list | tuple):
        return sum(map(_bytes, written))
    return 8


def _plain(state: object) -> object:
    """A state as it can be handed over; anything else as it is written."""
    if not isinstance(state, Mapping):
        return repr(state)[:80]
    return {str(name): value if isinstance(value, _MEASURED) else repr(value)[:80] for name, value in state.items()}
