"""A rank's memory as the kernel counts it: read from outside, so that nothing inside can say otherwise.

With every tensor of 64 KiB or more in a mapping of its own (`sandbox` sets the threshold), what a program frees goes
back to the kernel at once, and anonymous pages are live bytes, give or take what is small.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path

NOISE_BYTES = 3 * 2**20  # small objects, caches of the allocator, the kernel's own rounding


@dataclass(frozen=True)
class Pages:
    """Of one process now: anonymous pages, and the most there were since `forget_peak`."""

    held_bytes: int
    peak_bytes: int


def read_pages(pid: int) -> Pages | None:
    """None where the process is gone."""
    fields: dict[str, int] = {}
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            name, _, rest = line.partition(":")
            if name in ("VmHWM", "VmSwap", "RssAnon", "RssFile", "RssShmem"):
                fields[name] = int(rest.split()[0]) * 1024
    if len(fields) < 5:
        return None
    # pages of files only grow in number while a program runs, so what is left of the peak is anonymous, or less
    peak = fields["VmHWM"] - fields["RssFile"] - fields["RssShmem"]
    held = fields["RssAnon"] + fields["VmSwap"]
    return Pages(held, max(peak, held))


def forget_peak(pid: int) -> bool:
    """Let the peak begin anew; False where the kernel does not let us (only root may, of a process that is hidden)."""
    with contextlib.suppress(OSError):
        Path(f"/proc/{pid}/clear_refs").write_text("5")
        return True
    return False


def peak_since(pages: Pages, before: Pages | None) -> int:
    """The peak since `before`, whose peak could not be forgotten: one that was not passed since says nothing."""
    return pages.held_bytes if before is not None and pages.peak_bytes <= before.peak_bytes else pages.peak_bytes
