"""Ask the learner's shard_indices for several epochs, and for the first once more."""

from __future__ import annotations

from collections.abc import Iterable
from types import ModuleType
from typing import Any

from labs.code.inside.desk import Desk, callable_of


def run(learner: ModuleType, desk: Desk) -> None:
    shard_indices = callable_of(learner, "shard_indices", "length", "epoch", "rank", "n")
    for case in desk.cases():
        length, epochs = case.inputs["length"], case.inputs["epochs"]
        found = [_plain(shard_indices(length, epoch, desk.rank, desk.ranks)) for epoch in [*epochs, epochs[0]]]
        case.result("indices", found)


def _plain(indices: Iterable[Any]) -> list[int]:
    return [int(each) for each in indices]
