"""How far a network of switches reaches, what a thinner upper level costs, and what sums inside a switch save (F59).

And a torus of neighbours without switches (F77).
"""

from __future__ import annotations


def fat_tree_ports(radix: int, levels: int) -> int:
    """F59: end points of a fat tree at full bandwidth, 2(k/2)^L, from switches of k = `radix` ports in L `levels`.

    Every switch below the top has half its ports down and half up. Source: Al-Fares et al. 2008, section 3, there with
    three levels: k³/4.
    """
    return int(2 * (radix // 2) ** levels)


def tapered_bytes_per_second(bytes_per_second: float, oversubscription: float, crossing: float = 1.0) -> float:
    """F59: pace of ranks that send at B when a share x of it must pass a level oversubscribed r to 1, min(B, B/(rx)).

    All ranks below that level send alike and at once.
    """
    return min(bytes_per_second, bytes_per_second / (oversubscription * crossing))


def in_switch_all_reduce_bytes(size_bytes: float) -> float:
    """F59: bytes a rank sends when the switch adds, S whatever the number of ranks: up once, and the sum comes down.

    Source: Klenk et al. 2020 (An In-Network Architecture for Accelerating Shared-Memory Multiprocessor Collectives).
    """
    return size_bytes


def torus_gather_seconds(
    size_bytes: float, ranks: int, bytes_per_second: float, torus_axes: int = 3, axes_used: int = 1
) -> float:
    """F77: time of an all-gather, or a reduce-scatter, of S bytes over `ranks` chips of a torus, D·(n − 1)/n·S/(k·B).

    `bytes_per_second` is all of a chip's links together in one direction, two of them along each of the D axes of a
    torus that wraps around; the group lies along k of the axes. Both directions of each axis carry half, so the time
    hardly depends on the number of chips. An all-reduce is both, twice as long. Latency is left out: S must be large.
    Source: Austin et al. 2025 (How to scale your model), chapter 3.
    """
    return torus_axes * (ranks - 1) / ranks * size_bytes / (axes_used * bytes_per_second)
