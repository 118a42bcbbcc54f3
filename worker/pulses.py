"""Which rank gives no sign of life: stopped, or hanging. Its peers would wait for it for minutes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from labs.pulse import PULSE_SECONDS, pulse_file

SILENT_SECONDS = 20.0
SILENT_WHILE_LOADING_SECONDS = 90.0  # loading torch from a cold disk holds up a rank's other threads
_LONGEST_GAP_SECONDS = 5.0  # between two looks of ours; after a longer one it was us who were held up


class Pulses:
    """The signs of life of a run's ranks, by our own clock: what counts is that they change, not what time they tell.
    A rank that has given none yet is still being started."""

    def __init__(self, events: Path, ranks: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._files = {rank: pulse_file(events, rank) for rank in range(ranks)}
        self._clock = clock
        self._seen: dict[int, tuple[int, float]] = {}  # the file's time, and when we saw it change
        self._looked_at = self._now = clock()

    def find_silent(self, is_running: bool) -> tuple[int, float] | None:
        """The rank that has been silent for longest, if for too long, and for how many seconds; None while all are
        well."""
        now = self._clock()
        gap = now - self._looked_at
        if gap < PULSE_SECONDS / 2:
            return None
        self._looked_at = now
        if gap > _LONGEST_GAP_SECONDS:
            self._seen = {rank: (stamp, now) for rank, (stamp, _) in self._seen.items()}
        for rank, path in self._files.items():
            stamp = _changed_at(path)
            if stamp is not None and self._seen.get(rank, (None, 0.0))[0] != stamp:
                self._seen[rank] = (stamp, now)
        if not self._seen:
            return None
        self._now = now
        rank = min(self._seen, key=lambda each: self._seen[each][1])
        longest = SILENT_SECONDS if is_running else SILENT_WHILE_LOADING_SECONDS
        silent = now - self._seen[rank][1]
        return (rank, silent) if silent > longest else None

    def silent_for(self, seconds: float) -> frozenset[int]:
        """The ranks that had been silent for so long at the last look."""
        return frozenset(rank for rank, (_, at) in self._seen.items() if self._now - at > seconds)


def _changed_at(path: Path) -> int | None:
    try:
        # opened, for a network's file system asks its server only then; nothing is followed, and no pipe waited for
        opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        return os.fstat(opened).st_mtime_ns
    finally:
        os.close(opened)
