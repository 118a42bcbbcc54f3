"""Giving way: pages and clocks wait for a core where ranks want it."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_AUTOGROUP = Path("/proc/self/autogroup")


def give_way(steps: int) -> None:
    """From now on this process, all its threads, gives way to others by so many steps of niceness. Only one that leads
    a session of its own, as on the leash of `start`: what else is in a session is not ours to slow down.

    Linux may share cores out to sessions first, and then to the processes in each: without the second line the first
    says nothing to ranks, which have sessions of their own."""
    if not steps or os.getsid(0) != os.getpid():
        return
    at = max(steps, os.getpriority(os.PRIO_PROCESS, 0))  # what gives way more already may not give less
    os.setpriority(os.PRIO_PGRP, 0, at)
    with suppress(OSError):  # no Linux, or one that does not
        _AUTOGROUP.write_text(str(at))
