"""The best few of what was seen so far, one for each group."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Generic, TypeVar

Item = TypeVar("Item", bound=tuple[Any, ...])
Key = tuple[float, float]


class Ranking(Generic[Item]):
    """The `limit` best groups by the key of their best item. Of equal keys the smaller item is the better one."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._best: dict[Hashable, tuple[Key, Item]] = {}
        self._worst: tuple[Key, Item] | None = None

    def may_take(self, floor: Key, group: Hashable = None) -> bool:
        """Whether an item with a key of `floor` or more could change what is reported."""
        if group in self._best and floor > self._best[group][0]:
            return False
        return self._worst is None or floor <= self._worst[0]

    def add(self, key: Key, item: Item, group: Hashable) -> None:
        """See an item."""
        if self._worst is not None and (key, item) > self._worst:
            return
        if group not in self._best or (key, item) < self._best[group]:
            self._best[group] = (key, item)
        if len(self._best) > self.limit:
            self._best.pop(max(self._best, key=lambda each: self._best[each]))
        if len(self._best) == self.limit:
            self._worst = max(self._best.values())

    def items(self) -> list[Item]:
        """What is reported, the best first."""
        return [item for _, item in sorted(self._best.values())]
