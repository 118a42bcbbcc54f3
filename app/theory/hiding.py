"""Two things at once: a product and its transfer in chunks, and side by side on shared multiprocessors (F64)."""

from __future__ import annotations

from app.theory.checks import check_at_most


def chunked_overlap_seconds(
    compute_seconds: float, communication_seconds: float, chunks: int, chunk_seconds: float = 0.0
) -> float:
    """F64: time of C and G when each is cut into n chunks and one is computed while the next arrives.

    (C + G + (n−1)·max(C, G))/n, and `chunk_seconds` more for each chunk. By hand: one chunk to fill, the longer of the
    two in between, one to empty. Source: Wang et al. 2023 (Overlap Communication with Dependent Computation via
    Decomposition), section 3.
    """
    longer = max(compute_seconds, communication_seconds)
    return (compute_seconds + communication_seconds + (chunks - 1) * longer) / chunks + chunks * chunk_seconds


def overlapped_seconds(
    compute_seconds: float, communication_seconds: float, reserved_units: int = 0, units: int = 132
) -> float:
    """F64: time of C and G side by side while communication holds k of M multiprocessors, max(G, C + G·k/M).

    By hand: during G products run at (M−k)/M, and what they lose takes G·k/M afterwards. Raises SpecError where more
    are reserved than there are.
    """
    check_at_most("reserved_units", reserved_units, "units", units)
    return max(communication_seconds, compute_seconds + communication_seconds * reserved_units / units)
