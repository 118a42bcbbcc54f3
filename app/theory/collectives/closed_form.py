"""What collectives move and how long that takes in the α-β model: bytes are per rank, bandwidth is per direction."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil

from app.theory.checks import check_divides
from app.theory.hardware import GPUS
from labs.spec import BUCKET_BYTES


def ring_bytes_per_second(
    ranks: int,
    ranks_per_node: int,
    bytes_per_second: float,
    nic_bytes_per_second: float,
    nics_per_node: int | None = None,
) -> float:
    """F56: the bandwidth one rank of a ring over `ranks` finds, `ranks_per_node` of them side by side in each node.

    Rings over several nodes run over one rail for each rank a node has, so together they leave it through
    min(ranks_per_node, nics_per_node) network cards, a whole node by all of them; without `nics_per_node` every rank
    has its own. They go no faster than `bytes_per_second`, the link inside the node. Raises SpecError where nodes would
    hold unequal parts of the group.
    """
    side_by_side = min(ranks, ranks_per_node)
    check_divides("ranks_per_node", side_by_side, "ranks", ranks)
    if ranks == side_by_side:
        return bytes_per_second
    leaving = min(side_by_side, nics_per_node or side_by_side) * nic_bytes_per_second
    return leaving if side_by_side == 1 else min(bytes_per_second, leaving)


def gpu_ring_bytes_per_second(gpu: str, ranks: int, ranks_per_node: int = 8) -> float:
    """F56: the same among the GPUs of a catalogue entry, each with the network card that is typically put beside it."""
    record = GPUS[gpu]
    return ring_bytes_per_second(ranks, ranks_per_node, record.scale_up_bytes_per_second, record.nic_bytes_per_second)


def transfer_seconds(size_bytes: float, bytes_per_second: float, latency_seconds: float = 0.0) -> float:
    """F09: one point-to-point message, α + S/B."""
    return latency_seconds + size_bytes / bytes_per_second


def ring_all_reduce_bytes(size_bytes: float, ranks: int) -> float:
    """F10: bytes each rank sends (and receives) when a tensor of `size_bytes` is all-reduced around a ring, 2(n−1)/n·S.

    Source: Patarasuk and Yuan 2009, section 3: reduce-scatter, then all-gather, n−1 steps of S/n each.
    """
    return 2 * (ranks - 1) / ranks * size_bytes


def ring_all_reduce_seconds(
    size_bytes: float, ranks: int, bytes_per_second: float, latency_seconds: float = 0.0
) -> float:
    """F10: 2(n−1)α + 2(n−1)/n·S/B."""
    return 2 * (ranks - 1) * latency_seconds + ring_all_reduce_bytes(size_bytes, ranks) / bytes_per_second


def tree_all_reduce_seconds(
    size_bytes: float, ranks: int, bytes_per_second: float, latency_seconds: float = 0.0
) -> float:
    """F11: pipelined double binary tree, 2⌈log2 n⌉α + 2S/B; a rank alone sends nothing.

    Source: Sanders, Speck, Träff 2009.
    """
    return 2 * broadcast_seconds(size_bytes, ranks, bytes_per_second, latency_seconds, "tree")


BROADCASTS = ("chain", "tree")


def broadcast_seconds(
    size_bytes: float, ranks: int, bytes_per_second: float, latency_seconds: float = 0.0, shape: str = "tree"
) -> float:
    """F13: a pipelined broadcast, S/B and one latency a hop: n−1 hops down a `chain`, ⌈log2 n⌉ down a `tree`.

    Source: Sanders, Speck and Träff 2009.
    """
    if ranks == 1:
        return 0.0
    hops = ranks - 1 if shape == "chain" else (ranks - 1).bit_length()  # exact ⌈log2 n⌉
    return size_bytes / bytes_per_second + hops * latency_seconds


def half_ring_bytes(size_bytes: float, ranks: int) -> float:
    """F12: bytes each rank sends in a reduce-scatter or an all-gather, (n−1)/n·S, where S is the *full* tensor."""
    return (ranks - 1) / ranks * size_bytes


def half_ring_seconds(size_bytes: float, ranks: int, bytes_per_second: float, latency_seconds: float = 0.0) -> float:
    """F12: (n−1)α + (n−1)/n·S/B."""
    return (ranks - 1) * latency_seconds + half_ring_bytes(size_bytes, ranks) / bytes_per_second


def all_to_all_bytes(size_bytes: float, ranks: int) -> float:
    """F14: bytes each rank sends to the others of the `size_bytes` it holds, (n−1)/n·S: one n-th stays at home.

    Source: Thakur, Rabenseifner and Gropp 2005 (pairwise exchange).
    """
    return (ranks - 1) / ranks * size_bytes


def all_to_all_seconds(size_bytes: float, ranks: int, bytes_per_second: float, latency_seconds: float = 0.0) -> float:
    """F14: (n−1)α + (n−1)/n·S/B, one exchange with each other rank."""
    return (ranks - 1) * latency_seconds + all_to_all_bytes(size_bytes, ranks) / bytes_per_second


def hierarchical_node_bytes(size_bytes: float, nodes: int) -> float:
    """F15: bytes that leave each node when its GPUs reduce-scatter first: 2(M−1)/M·S over all its NICs together.

    Source: Cho et al. 2019 (BlueConnect): reduce-scatter inside, all-reduce across, all-gather inside.
    """
    return ring_all_reduce_bytes(size_bytes, nodes)


def hierarchical_all_reduce_seconds(
    size_bytes: float, gpus_per_node: int, nodes: int, bytes_per_second: float, node_bytes_per_second: float
) -> float:
    """F15: 2(g−1)/g·S/B inside the nodes, then 2(M−1)/M·S over the network bandwidth of a whole node.

    Each of the g GPUs reduces S/g across nodes over its share of the node's NICs. Latency is left out.
    """
    inside = ring_all_reduce_bytes(size_bytes, gpus_per_node) / bytes_per_second
    return inside + hierarchical_node_bytes(size_bytes, nodes) / node_bytes_per_second


# Bus over algorithm bandwidth as c·(n−1)/n + d: what the slowest link carries for each byte of the tensor.
_BUS_FACTORS: Mapping[str, tuple[int, int]] = {
    "all-reduce": (2, 0),
    "reduce-scatter": (1, 0),
    "all-gather": (1, 0),
    "all-to-all": (1, 0),
    "broadcast": (0, 1),
    "reduce": (0, 1),
}
OPERATIONS = tuple(_BUS_FACTORS)


def algorithm_bandwidth_bytes_per_second(size_bytes: float, seconds: float) -> float:
    """F16: S/t as nccl-tests reports it, where S is the full tensor of a reduce-scatter or an all-gather."""
    return size_bytes / seconds


def bus_bandwidth_bytes_per_second(size_bytes: float, seconds: float, ranks: int, operation: str) -> float:
    """F16: algorithm bandwidth times the operation's factor, comparable with a link's bandwidth in one direction.

    Source: nccl-tests, doc/PERFORMANCE.md.
    """
    halves, whole = _BUS_FACTORS[operation]
    factor = halves * (ranks - 1) / ranks + whole
    return factor * algorithm_bandwidth_bytes_per_second(size_bytes, seconds)


# How many times the whole gradient (= weight) tensor crosses half a ring per optimizer step, as c + d·A for A
# accumulation steps. An all-reduce is two halves.
_HALVES: Mapping[str, tuple[int, int]] = {
    "ddp": (2, 0),  # no_sync on all but the last micro-step
    "ddp-every-micro-step": (0, 2),
    "zero-1": (2, 0),  # reduce-scatter gradients once, all-gather updated weights
    "zero-2": (1, 1),  # a reduce-scatter every micro-step, one all-gather
    "zero-3": (0, 3),  # two all-gathers and a reduce-scatter every micro-step
    "zero-3-keep-gathered": (0, 2),
}
STRATEGIES = tuple(_HALVES)


def data_parallel_step_bytes(size_bytes: float, ranks: int, strategy: str, accumulation: int = 1) -> float:
    """F17: bytes each rank sends per optimizer step for a weight (= gradient) tensor of `size_bytes`.

    Source: Rajbhandari et al. 2020 (ZeRO), section 7, for one micro-step; accumulation by counting collectives.
    """
    once, every_micro_step = _HALVES[strategy]
    return (once + every_micro_step * accumulation) * half_ring_bytes(size_bytes, ranks)


def ddp_buckets(gradient_bytes: float, bucket_bytes: float = BUCKET_BYTES) -> int:
    """F53: all-reduces DDP launches per step, ⌈S/bucket⌉; its smaller first bucket (1 MiB) can add one."""
    return ceil(gradient_bytes / bucket_bytes)
