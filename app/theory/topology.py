"""How far a network of switches reaches, what a thinner upper level costs, and what sums inside a switch save (F59)."""

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
