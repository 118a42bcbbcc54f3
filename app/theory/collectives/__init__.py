"""Collectives: bytes and seconds in closed form, and the same played out message by message.

`closed_form` has what every rank sends and how long it takes (F10 to F15), `simulation` the algorithms over `rings` and
`trees`, whose `messages` share the links of a network.
"""

from app.theory.collectives.closed_form import (
    BROADCASTS,
    OPERATIONS,
    STRATEGIES,
    algorithm_bandwidth_bytes_per_second,
    all_to_all_bytes,
    all_to_all_seconds,
    broadcast_seconds,
    bus_bandwidth_bytes_per_second,
    data_parallel_step_bytes,
    ddp_buckets,
    gpu_ring_bytes_per_second,
    half_ring_bytes,
    half_ring_seconds,
    hierarchical_all_reduce_seconds,
    hierarchical_node_bytes,
    ring_all_reduce_bytes,
    ring_all_reduce_seconds,
    ring_bytes_per_second,
    transfer_seconds,
    tree_all_reduce_seconds,
)
from app.theory.collectives.messages import CollectiveRun, Message, Network
from app.theory.collectives.rounds import Held, Round, own_pieces, own_values, rounds
from app.theory.collectives.simulation import (
    simulate_all_gather,
    simulate_all_to_all,
    simulate_hierarchical_all_reduce,
    simulate_naive_all_reduce,
    simulate_reduce_scatter,
    simulate_ring_all_reduce,
    simulate_tree_all_reduce,
)
from app.theory.collectives.trees import Tree, two_trees

__all__ = [
    "BROADCASTS",
    "OPERATIONS",
    "STRATEGIES",
    "CollectiveRun",
    "Held",
    "Message",
    "Network",
    "Round",
    "Tree",
    "algorithm_bandwidth_bytes_per_second",
    "all_to_all_bytes",
    "all_to_all_seconds",
    "broadcast_seconds",
    "bus_bandwidth_bytes_per_second",
    "data_parallel_step_bytes",
    "ddp_buckets",
    "gpu_ring_bytes_per_second",
    "half_ring_bytes",
    "half_ring_seconds",
    "hierarchical_all_reduce_seconds",
    "hierarchical_node_bytes",
    "own_pieces",
    "own_values",
    "ring_all_reduce_bytes",
    "ring_all_reduce_seconds",
    "ring_bytes_per_second",
    "rounds",
    "simulate_all_gather",
    "simulate_all_to_all",
    "simulate_hierarchical_all_reduce",
    "simulate_naive_all_reduce",
    "simulate_reduce_scatter",
    "simulate_ring_all_reduce",
    "simulate_tree_all_reduce",
    "transfer_seconds",
    "tree_all_reduce_seconds",
    "two_trees",
]
