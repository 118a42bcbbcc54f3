"""Replicas that train by themselves for many steps and average seldom (F74)."""

from __future__ import annotations

from app.theory.collectives import ring_all_reduce_bytes


def outer_bandwidth(
    parameters: float, sites: int, inner_steps: int, step_seconds: float, bytes_each: float = 4.0
) -> float:
    """F74: bytes per second each of `sites` replicas sends to average its change every `inner_steps` steps.

    A ring all-reduce of w·N bytes in H·t seconds: 2(n − 1)/n · w·N/(H·t), the mean over a round. What is spread evenly
    (Streaming DiLoCo) needs no more; what is sent in one burst waits as long as `outer_idle_fraction` says.
    Source: Douillard et al. 2023 (DiLoCo), section 2; Douillard et al. 2025 (Streaming DiLoCo).
    """
    return ring_all_reduce_bytes(parameters * bytes_each, sites) / (inner_steps * step_seconds)


def outer_idle_fraction(
    parameters: float,
    sites: int,
    inner_steps: int,
    step_seconds: float,
    bytes_per_second: float,
    bytes_each: float = 4.0,
) -> float:
    """F74: share of the time, 0..1, in which GPUs wait where the change is averaged at once every `inner_steps` steps.

    T/(H·t + T) with T the ring all-reduce over the link between sites. H = 1 is data parallelism without overlap.
    Source: Douillard et al. 2023 (DiLoCo), section 2.
    """
    exchange = ring_all_reduce_bytes(parameters * bytes_each, sites) / bytes_per_second
    return exchange / (inner_steps * step_seconds + exchange)
