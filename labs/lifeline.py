"""A rank must not outlive the torchrun that started it: an orphan would hold its cores, memory or GPU for hours.

torchrun ends its ranks when it is asked to end. It cannot when it is killed with SIGKILL, so each rank
ties its own life to its parent's.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import threading
import time
from pathlib import Path

from labs.leash import PARENT, ask_kernel_to_die_with_parent

_POLL_SECONDS = 0.5
_LARGEST_SHARE = 0.9  # of the machine's memory


def die_with_parent() -> None:
    """From now on this process is killed when its parent dies, however the parent dies.

    A parent that died before this was called is no longer found by asking: an orphan's parent is somebody else. So who
    it was is handed down in the environment; without that, as under a torchrun started by hand, asking has to do.
    """
    handed_down = os.environ.pop(PARENT, "")
    parent = int(handed_down) if handed_down.isdecimal() else os.getppid()
    if not ask_kernel_to_die_with_parent():
        threading.Thread(target=_watch, args=(parent,), name="lifeline", daemon=True).start()
    if os.getppid() != parent:  # it died in the meantime, before anyone was watching
        os.kill(os.getpid(), signal.SIGKILL)


def _watch(parent: int) -> None:
    """An orphan is given a new parent: that is how everyone but Linux can tell."""
    while os.getppid() == parent:
        time.sleep(_POLL_SECONDS)
    os.kill(os.getpid(), signal.SIGKILL)


def cap_memory(more_bytes: float) -> int | None:
    """From now on this process may take `more_bytes` of memory; asking for more fails as on a machine that has none.

    Without a cap the system would have to choose whom to kill, and might choose the product. What counts is what the
    process could write to and shares with nobody (RLIMIT_DATA): of address space alone, torch reserves far more than it
    takes. Returns the cap in bytes, lowered to what the machine has; None where there is no such service.
    """
    if sys.platform != "linux":
        return None
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    cap = _data_bytes() + int(min(more_bytes, _LARGEST_SHARE * memory))
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    if hard != resource.RLIM_INFINITY:
        cap = min(cap, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (cap, cap))
    return cap


def _data_bytes() -> int:
    """What counts against RLIMIT_DATA already."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmData:"):
            return int(line.split()[1]) * 1024
    return 0


def living_siblings() -> int | None:
    """How many children of our parent are alive, ourselves included; None where /proc does not tell.

    A rank that was just killed remains as a zombie until torchrun collects it, and counts as dead.
    """
    parent = str(os.getppid())
    alive = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            # "pid (name, which may hold spaces and brackets) state ppid ..."
            state, ppid = stat.read_text().rpartition(")")[2].split()[:2]
        except (OSError, ValueError):
            continue  # it ended while we were looking
        alive += ppid == parent and state not in "ZX"
    return alive or None
