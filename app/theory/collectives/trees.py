"""Two binary trees at once, each for half of the tensor, so that a rank forwards in one and is a leaf in the other.

A single tree would have its inner ranks send S up and 2S down while the leaves send S: 3S/B. With two, no rank sends
more than 2S. Source: Sanders, Speck and Träff 2009; the shape of the trees is NCCL's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter

from app.theory.collectives.messages import Message, Network


@dataclass(frozen=True)
class Tree:
    """A binary tree: places 0 (the root) to n−1, the rank at each place, and how the places hang together."""

    rank_at: tuple[int, ...]
    parent: tuple[int, ...]  # of the root: itself

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        below: list[list[int]] = [[] for _ in self.parent]
        for place, parent in enumerate(self.parent[1:], start=1):
            below[parent].append(place)
        return tuple(map(tuple, below))

    @cached_property
    def depth(self) -> tuple[int, ...]:
        """Hops from the root."""
        return tuple(self._hops_up(place) for place in range(len(self.parent)))

    @cached_property
    def height(self) -> tuple[int, ...]:
        """Hops from the farthest leaf below."""
        heights = [0] * len(self.parent)
        for place in sorted(range(1, len(self.parent)), key=lambda place: -self.depth[place]):
            heights[self.parent[place]] = max(heights[self.parent[place]], heights[place] + 1)
        return tuple(heights)

    def _hops_up(self, place: int) -> int:
        return 0 if place == 0 else 1 + self._hops_up(self.parent[place])


def two_trees(ranks: int) -> tuple[Tree, Tree]:
    """A tree whose leaves are the odd places, and the same over the ranks mirrored or, if odd in number, shifted."""
    parent = tuple(_parent(place, ranks) for place in range(ranks))
    others = reversed(range(ranks)) if ranks % 2 == 0 else ((place + 1) % ranks for place in range(ranks))
    return Tree(tuple(range(ranks)), parent), Tree(tuple(others), parent)


def _parent(place: int, places: int) -> int:
    """The place one binary digit up: 1 and 3 have 2, 2 and 6 have 4. One beyond the end gives way to the lower one."""
    digit = place & -place
    above = (place ^ digit) | (digit << 1)
    return above if above < places else place ^ digit


def tree_all_reduce(size_bytes: float, ranks: int, pieces: int, network: Network) -> list[Message]:
    """Up both trees and down again, in `pieces` for each tree, in the order in which every rank sends them."""
    timed = [
        each
        for number, tree in enumerate(two_trees(ranks))
        for piece in range(number * pieces, (number + 1) * pieces)
        for each in _both_ways(tree, piece, piece % pieces, size_bytes / 2 / pieces, network)
    ]
    return [message for _, message in sorted(timed, key=itemgetter(0))]


def _both_ways(
    tree: Tree, piece: int, turn: int, piece_bytes: float, network: Network
) -> Iterator[tuple[float, Message]]:
    """The messages of one piece, each with about the time it can be sent, to order what a rank has to send.

    In a round, a rank sends four messages at most: one up and two down in one tree, one up in the other.
    """
    round_seconds = 4 * piece_bytes / min(network.bytes_per_second)
    hop_seconds = round_seconds + network.latency_seconds

    def message(way: str, place: int, after: tuple[str, ...]) -> Message:
        ranks = tree.rank_at[place], tree.rank_at[tree.parent[place]]
        source, target = ranks if way == "up" else ranks[::-1]
        return Message(name(way, place), source, target, range(piece, piece + 1), piece_bytes, network, after)

    def name(way: str, place: int) -> str:
        return f"{way} {piece}: {tree.rank_at[place]}"

    def up(*places: int) -> tuple[str, ...]:
        return tuple(name("up", place) for place in places)

    for place in range(1, len(tree.parent)):
        above = tree.parent[place]
        yield turn * round_seconds + tree.height[place] * hop_seconds, message("up", place, up(*tree.children[place]))
        arrived = (name("down", above),) if above else up(*tree.children[0])
        hops = tree.height[0] + tree.depth[above]
        yield turn * round_seconds + hops * hop_seconds, message("down", place, arrived)
