"""What binds a kernel: arithmetic, memory, a last wave of tiles, or its launch (F71)."""

from __future__ import annotations

from math import ceil


def ridge_intensity(peak_flops_per_second: float, memory_bytes_per_second: float) -> float:
    """F71: FLOPs a byte at which compute and memory take equally long, F/B. Source: Williams et al. 2009 (Roofline)."""
    return peak_flops_per_second / memory_bytes_per_second


def gemm_intensity(m: int, n: int, k: int, bytes_each: float = 2.0) -> float:
    """F71: FLOPs a byte of (m × k)·(k × n), 2mnk/(w(mk + kn + mn)), each matrix read or written once.

    Source: NVIDIA, Matrix Multiplication Background user's guide, chapter 2.
    """
    return 2 * m * n * k / (bytes_each * (m * k + k * n + m * n))


def wave_efficiency(m: int, n: int, tile_m: int = 128, tile_n: int = 256, units: int = 132) -> float:
    """F71: filled share of the waves in which ⌈m/tₘ⌉·⌈n/tₙ⌉ tiles run on `units` multiprocessors, one on each.

    Source: NVIDIA, Matrix Multiplication Background user's guide, section 3.2.
    """
    tiles = ceil(m / tile_m) * ceil(n / tile_n)
    return tiles / (ceil(tiles / units) * units)


def launch_bound_seconds(kernels: int, launch_seconds: float, gpu_seconds: float) -> float:
    """F71: time of `kernels` that run for `gpu_seconds` in all and are launched one after the other, the longer."""
    return max(kernels * launch_seconds, gpu_seconds)
