"""Where a group of ranks sits, and how long its collectives take there.

Ranks are numbered with tensor fastest, then context, data and pipeline (F26), so a group is its size and the stride
between its ranks. A ring that crosses nodes uses as many network cards of a node as the group has ranks there, and goes
no faster than the links inside the node.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import ceil, gcd, log2

from app.theory.collectives import half_ring_bytes, ring_bytes_per_second
from app.theory.planner.engine.constants import FITTED, Constants


@dataclass(frozen=True)
class Network:
    """Links of one GPU as collectives find them, one direction, and how many GPUs share a node.

    `contention` is the share of a hidden collective's time that compute beside it loses.
    """

    intra_bytes_per_second: float
    inter_bytes_per_second: float
    intra_latency_seconds: float
    inter_latency_seconds: float
    gpus_per_node: int
    contention: float


def network_of(
    intra_bytes_per_second: float,
    inter_bytes_per_second: float,
    latencies: tuple[float, float],
    gpus_per_node: int,
    constants: Constants = FITTED,
) -> Network:
    """A network from data-sheet bandwidths per GPU and direction, and (intra, inter) seconds of any message."""
    share = constants.network_efficiency
    return Network(
        intra_bytes_per_second * share, inter_bytes_per_second * share, *latencies, gpus_per_node, constants.contention
    )


@dataclass(frozen=True)
class Group:
    """`size` ranks, `per_node` of them on each node; `all_rails` where a ring uses a network card for each of those."""

    size: int
    per_node: int
    all_rails: bool = True

    @property
    def nodes(self) -> int:
        return ceil(self.size / self.per_node)

    @property
    def link(self) -> str:
        return "intra_node" if self.nodes == 1 else "inter_node"


@lru_cache(maxsize=4096)
def group(network: Network, size: int, stride: int, all_rails: bool = True) -> Group:
    """The group of `size` ranks `stride` apart, where nodes cut it worst: only parts that divide a node stay whole."""
    whole = network.gpus_per_node % stride == 0
    return Group(size, gcd(size, network.gpus_per_node // stride) if whole else 1, all_rails)


def rank_bytes_per_second(network: Network, ranks: Group) -> float:
    """What one rank of a ring gets."""
    return ring_bytes_per_second(
        ranks.nodes * ranks.per_node,
        ranks.per_node,
        network.intra_bytes_per_second,
        network.inter_bytes_per_second,
        None if ranks.all_rails else 1,
    )


def half_ring_seconds(network: Network, ranks: Group, size_bytes: float) -> float:
    """An all-gather or a reduce-scatter of a full tensor of `size_bytes`: (n−1)/n·S/B and the way around (F12)."""
    if ranks.size == 1:
        return 0.0
    hops = (ranks.size - ranks.nodes) * network.intra_latency_seconds
    hops += (ranks.nodes if ranks.nodes > 1 else 0) * network.inter_latency_seconds
    return hops + half_ring_bytes(size_bytes, ranks.size) / rank_bytes_per_second(network, ranks)


def all_reduce_seconds(network: Network, ranks: Group, size_bytes: float) -> float:
    """A ring or a tree, whichever is faster (F10, F11)."""
    if ranks.size == 1:
        return 0.0
    ring = 2 * half_ring_seconds(network, ranks, size_bytes)
    hop = network.intra_latency_seconds if ranks.nodes == 1 else network.inter_latency_seconds
    tree = 2 * ceil(log2(ranks.size)) * hop + 2 * size_bytes / rank_bytes_per_second(network, ranks)
    return min(ring, tree)


def all_to_all_seconds(network: Network, ranks: Group, size_bytes: float) -> float:
    """Each rank sends (n−1)/n of its `size_bytes` (F14): what leaves the node goes through its own network card."""
    if ranks.size == 1:
        return 0.0
    each = size_bytes / ranks.size
    inside = (ranks.per_node - 1) * (network.intra_latency_seconds + each / network.intra_bytes_per_second)
    away = ranks.size - ranks.per_node
    between = away * each / network.inter_bytes_per_second + (ranks.nodes - 1) * network.inter_latency_seconds
    return max(inside, between)


def send_seconds(network: Network, ranks: Group, size_bytes: float) -> float:
    """One message between neighbours of a group, over its slowest hop (F09)."""
    inside = ranks.nodes == 1
    latency = network.intra_latency_seconds if inside else network.inter_latency_seconds
    speed = network.intra_bytes_per_second if inside else network.inter_bytes_per_second
    return latency + size_bytes / speed
