"""Collectives message by message, by the algorithms NCCL and MPI use, over links that need not be equal.

On equal links they take what the α-β model says (F10 to F15). All of them raise SpecError for inputs out of range.
"""

from __future__ import annotations

from app.theory.collectives.messages import (
    Bandwidth,
    CollectiveRun,
    Message,
    Network,
    check_amount,
    checked_network,
    last_received,
    play,
)
from app.theory.collectives.rings import Ring
from app.theory.collectives.trees import tree_all_reduce
from app.theory.simulator.checks import at_least, check


def simulate_ring_all_reduce(
    size_bytes: float, ranks: int, link_bytes_per_second: Bandwidth, latency_seconds: float = 0.0
) -> CollectiveRun:
    """F10: reduce-scatter around a ring, then all-gather: in each of 2(n−1) steps every rank sends S/n to the next.

    The bandwidths are of the hops from rank r to r + 1. Source: Patarasuk and Yuan 2009, section 3.
    """
    return play(ranks, _whole_ring(size_bytes, ranks, link_bytes_per_second, latency_seconds).all_reduce({}))


def simulate_reduce_scatter(
    size_bytes: float, ranks: int, link_bytes_per_second: Bandwidth, latency_seconds: float = 0.0
) -> CollectiveRun:
    """F12: n−1 steps around a ring; `size_bytes` is the full tensor every rank begins with. Source: as F10."""
    ring = _whole_ring(size_bytes, ranks, link_bytes_per_second, latency_seconds)
    return play(ranks, ring.half("reduce-scatter", {}))


def simulate_all_gather(
    size_bytes: float, ranks: int, link_bytes_per_second: Bandwidth, latency_seconds: float = 0.0
) -> CollectiveRun:
    """F12: n−1 steps around a ring; `size_bytes` is the full tensor every rank ends with. Source: as F10."""
    ring = _whole_ring(size_bytes, ranks, link_bytes_per_second, latency_seconds)
    return play(ranks, ring.half("all-gather", {}))


def simulate_hierarchical_all_reduce(
    size_bytes: float,
    ranks_per_node: int,
    nodes: int,
    link_bytes_per_second: Bandwidth,
    nic_bytes_per_second: Bandwidth,
    link_latency_seconds: float = 0.0,
    nic_latency_seconds: float = 0.0,
) -> CollectiveRun:
    """F15: reduce-scatter inside every node, all-reduce of each rank's part across nodes, all-gather inside.

    Ranks are numbered node by node. `nic_bytes_per_second` is what a rank has to itself: where a node's ranks share a
    NIC, its bandwidth over `ranks_per_node`. Source: by composing rings, as NCCL and Horovod do.
    """
    check(at_least("ranks_per_node", ranks_per_node, 1), at_least("nodes", nodes, 1))
    ranks = ranks_per_node * nodes
    check_amount(size_bytes, "nodes", nodes, 2 * ranks * (ranks_per_node + nodes - 2))
    link = checked_network("link", ranks, link_bytes_per_second, link_latency_seconds)
    nic = checked_network("nic", ranks, nic_bytes_per_second, nic_latency_seconds, "nic_bytes_per_second")
    shards = [range(nodes * local, nodes * (local + 1)) for local in range(ranks_per_node)]
    inside = [
        Ring(range(first, first + ranks_per_node), shards, size_bytes / ranks_per_node, link)
        for first in range(0, ranks, ranks_per_node)
    ]
    # a reduce-scatter leaves the rank at place i of its ring with shard i + 1
    across = [
        Ring(
            range(local, ranks, ranks_per_node),
            _one_by_one(shards[(local + 1) % ranks_per_node]),
            size_bytes / ranks,
            nic,
        )
        for local in range(ranks_per_node)
    ]
    scattered = [message for ring in inside for message in ring.half("reduce-scatter", {})]
    reduced = [message for ring in across for message in ring.all_reduce(last_received(scattered))]
    after = last_received(scattered + reduced)
    gathered = [message for ring in inside for message in ring.half("all-gather", after, first_piece=1)]
    return play(ranks, scattered + reduced + gathered)


def simulate_tree_all_reduce(
    size_bytes: float,
    ranks: int,
    link_bytes_per_second: Bandwidth,
    latency_seconds: float = 0.0,
    pieces: int = 32,
) -> CollectiveRun:
    """F11: up and down two binary trees, each with half of the tensor cut into `pieces` that follow one another.

    More pieces come closer to 2S/B; one piece shows a tree without pipelining.
    Source: Sanders, Speck and Träff 2009.
    """
    network = checked_network("link", ranks, link_bytes_per_second, latency_seconds)
    check(at_least("pieces", pieces, 1))
    check_amount(size_bytes, "pieces", pieces, 4 * pieces * (ranks - 1))
    return play(ranks, tree_all_reduce(size_bytes, ranks, pieces, network))


def simulate_naive_all_reduce(
    size_bytes: float, ranks: int, link_bytes_per_second: Bandwidth, latency_seconds: float = 0.0
) -> CollectiveRun:
    """Every rank sends its whole tensor to every other, one after the other: (n−1)S. Source: the definition."""
    network = checked_network("link", ranks, link_bytes_per_second, latency_seconds)
    check_amount(size_bytes, "ranks", ranks, ranks * (ranks - 1))
    messages = [
        Message(
            f"step {step}: {source}→{(source + step) % ranks}",
            source,
            (source + step) % ranks,
            range(ranks),
            size_bytes,
            network,
        )
        for step in range(1, ranks)
        for source in range(ranks)
    ]
    return play(ranks, messages)


def simulate_all_to_all(
    size_bytes: float, ranks: int, link_bytes_per_second: Bandwidth, latency_seconds: float = 0.0
) -> CollectiveRun:
    """F14: in step k every rank sends S/n to the rank k places on and receives as much before it goes on.

    `size_bytes` is what each rank begins with, its own part included.
    Source: the pairwise exchange of Thakur, Rabenseifner and Gropp 2005.
    """
    network = checked_network("link", ranks, link_bytes_per_second, latency_seconds)
    check_amount(size_bytes, "ranks", ranks, ranks * (ranks - 1))
    return play(
        ranks,
        [
            _exchanged(source, step, ranks, size_bytes / ranks, network)
            for step in range(1, ranks)
            for source in range(ranks)
        ],
    )


def _exchanged(source: int, step: int, ranks: int, part_bytes: float, network: Network) -> Message:
    target = (source + step) % ranks
    piece = source * ranks + target
    received = (f"step {step - 1}: {(source - step + 1) % ranks}→{source}",) if step > 1 else ()
    name = f"step {step}: {source}→{target}"
    return Message(name, source, target, range(piece, piece + 1), part_bytes, network, received)


def _whole_ring(size_bytes: float, ranks: int, bytes_per_second: Bandwidth, latency_seconds: float) -> Ring:
    """All ranks in one ring, with a piece of the tensor for each."""
    network = checked_network("link", ranks, bytes_per_second, latency_seconds)
    check_amount(size_bytes, "ranks", ranks, 2 * ranks * (ranks - 1))
    return Ring(range(ranks), _one_by_one(range(ranks)), size_bytes / ranks, network)


def _one_by_one(pieces: range) -> list[range]:
    return [range(piece, piece + 1) for piece in pieces]
