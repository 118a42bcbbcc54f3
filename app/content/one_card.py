"""A collective is not timed at one network card's speed where several ranks of it share a node.

Rings over whole nodes leave each through all of its cards together (F56), so content says where a group sits and takes
the bandwidth from `ring_bandwidth` or `gpu_ring_bandwidth`. Typing a card's speed beside a group of ranks is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from app.theory.hardware import GPUS, LINKS

if TYPE_CHECKING:
    from app.content.live import Computed

PLACED = frozenset({"ring_bandwidth", "gpu_ring_bandwidth"})
# Collectives that a ring carries, with the input that counts their ranks; those of bytes leave the division to others.
TIMED: Mapping[str, str] = {
    "ring_all_reduce_seconds": "ranks",
    "tree_all_reduce_seconds": "ranks",
    "half_ring_seconds": "ranks",
    "tensor_parallel_time": "tensor",
    "tensor_parallel_share": "tensor",
    "fsdp_break_even_tokens": "ranks",
    "ddp_break_even_tokens": "ranks",
}
MOVED: Mapping[str, str] = {
    "ring_all_reduce_bytes": "ranks",
    "half_ring_bytes": "ranks",
    "data_parallel_bytes": "ranks",
    "tensor_parallel_bytes": "tensor",
    "sequence_parallel_bytes": "tensor",
}
_NETWORKS = ("infiniband", "ethernet")
CARDS = frozenset(gpu.nic_bytes_per_second for gpu in GPUS.values()) | {
    link.bytes_per_second for link in LINKS.values() if link.name.startswith(_NETWORKS)
}

SAY_WHERE = (
    "takes one network card's speed for {ranks:g} ranks. Say where they sit: bytes_per_second=gpu_ring_bandwidth("
    "gpu=…, ranks=…, ranks_per_node=…), or ring_bandwidth with links of your own; ranks_per_node=1 where one is right"
)


def unplaced_call(name: str, inputs: Mapping[str, Any]) -> str | None:
    """Why a formula may not be called with `inputs`, or None where it may."""
    if name == "transfer":
        return unplaced_division(inputs.get("size_bytes"), inputs.get("bytes_per_second"))
    if name not in TIMED:
        return None
    ranks = float(inputs.get(TIMED[name], 1))
    return SAY_WHERE.format(ranks=ranks) if ranks > 1 and _is_bare_card(inputs.get("bytes_per_second")) else None


def unplaced_division(moved: Any, speed: Any) -> str | None:
    """Why bytes of a collective may not be divided by `speed`, or None where they may."""
    if not _is_bare_card(speed):
        return None
    for source in _sources(moved):
        count = MOVED.get(source.formula.name)
        if count and float(source.inputs[count]) > 1:
            return SAY_WHERE.format(ranks=float(source.inputs[count]))
    return None


def _is_bare_card(speed: object) -> bool:
    """Whether a bandwidth is one card's and nothing says that the group has one rank in a node."""
    if not isinstance(speed, int | float) or float(speed) not in CARDS:
        return False
    return not any(source.formula.name in PLACED for source in _sources(speed))


def _sources(value: Computed | Any) -> tuple[Any, ...]:
    return getattr(value, "sources", ())
