"""A rank's sign of life: a file whose time of change moves every second, for as long as the process is not stopped.

A rank that computes for minutes writes no event and is well; one that was stopped, or hangs where no other thread of it
runs either, looks just like it from the outside, but for this. Torch-free, so that it beats while torch is loaded.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from pathlib import Path

PULSE_SECONDS = 1.0


def pulse_file(folder: Path, rank: int) -> Path:
    """Where rank `rank` of the run that reports into `folder` gives its sign of life."""
    return folder / f"pulse-{rank}"


def keep_pulse(folder: Path, rank: int) -> None:
    """Start giving a sign of life every PULSE_SECONDS."""
    path = pulse_file(folder, rank)
    path.touch(mode=0o600)

    def beat() -> None:
        while True:
            time.sleep(PULSE_SECONDS)
            with contextlib.suppress(OSError):  # a full disk is somebody else's to report
                os.utime(path)

    threading.Thread(target=beat, name="pulse", daemon=True).start()
