"""The GPU allocator's own count, beside ours: over the same steps, so that the two can be compared. A CPU has no such
allocator."""

from __future__ import annotations

import torch


def count_peak_from_now(device: torch.device) -> None:
    """Forget the largest count so far: what the model's construction or an earlier step took is no part of a step."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        torch.cuda.reset_peak_memory_stats(device)


def peak_bytes(device: torch.device) -> int | None:
    """The most bytes of tensors at once since then, as the allocator rounds them up."""
    return torch.cuda.max_memory_allocated(device) if device.type == "cuda" else None
