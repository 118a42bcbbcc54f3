"""How fast the machine is just now, for what must be quick: a busy machine is slow, not wrong."""

from __future__ import annotations

import subprocess
import sys
import time

STARTS = 50


def slack_seconds() -> float:
    """What fifty starts of a bare interpreter take just now: under a second on a machine with nothing else to do."""
    began = time.monotonic()
    for _ in range(3):
        subprocess.run([sys.executable, "-I", "-S", "-c", ""], check=True)
    return (time.monotonic() - began) / 3 * STARTS
