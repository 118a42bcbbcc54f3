"""The GPU allocator's own account: its count beside ours, over the same steps, so that the two can be compared; and all
that it did, as a snapshot that torch's viewer of memory opens. A CPU has no such allocator."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from labs.command import SNAPSHOTS
from labs.probes.report import Reporter
from labs.snapshots import MOST_BYTES, file_of

MOST_ENTRIES = 20_000  # the newest; with the Python frames of each a snapshot has some tens of megabytes


def count_peak_from_now(device: torch.device) -> None:
    """Forget the largest count so far: what the model's construction or an earlier step took is no part of a step."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        torch.cuda.reset_peak_memory_stats(device)


def peak_bytes(device: torch.device) -> int | None:
    """The most bytes of tensors at once since then, as the allocator rounds them up."""
    return torch.cuda.max_memory_allocated(device) if device.type == "cuda" else None


@contextmanager
def recorded(reporter: Reporter) -> Iterator[None]:
    """What the allocator does inside is recorded, and written down at the end, or when memory has run out: what the
    step holds is still held then. Of another failure there is nothing about memory to tell."""
    torch.cuda.memory._record_memory_history(enabled="all", context="all", stacks="python", max_entries=MOST_ENTRIES)
    try:
        yield
    except torch.OutOfMemoryError:
        _write(reporter)
        raise
    else:
        _write(reporter)
    finally:
        torch.cuda.memory._record_memory_history(enabled=None)


def _write(reporter: Reporter) -> None:
    """Whole or not at all, under its name; what keeps it from being written fails no run."""
    place = Path(os.environ.get(SNAPSHOTS) or ".") / file_of(reporter.rank)
    beside = place.with_suffix(".part")
    try:
        torch.cuda.memory._dump_snapshot(str(beside))  # type: ignore[no-untyped-call]
        size = beside.stat().st_size
        if size > MOST_BYTES:
            raise OSError(f"it has {size / 1e6:,.0f} MB, and {MOST_BYTES / 1e6:,.0f} MB are kept of one")
        beside.replace(place)
    except (OSError, RuntimeError) as error:
        beside.unlink(missing_ok=True)
        reporter.log("stderr", f"no snapshot of the allocator is kept: {error}")
