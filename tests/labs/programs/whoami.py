"""Ranks that write down what they are: a process of their own, with nothing of anybody else's."""

from __future__ import annotations

import contextlib
import json
import os
import random
import resource
import signal
import sys
import threading
from pathlib import Path

from labs.lifeline import die_with_parent
from labs.spec import parse_run_spec


def open_files() -> list[str]:
    """But for the standard three."""
    found = []
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):  # the one that the list was read through
            found.append(os.readlink(f"/proc/self/fd/{number}") if int(number) > 2 else "")
    return sorted(filter(None, found))


die_with_parent()
rank = os.environ["RANK"]
spec = sys.argv[sys.argv.index("--spec") + 1]
folder = Path(sys.argv[sys.argv.index("--events") + 1])
handled = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGCHLD]
found = {
    "leads_its_session": os.getsid(0) == os.getpid(),
    "variables": dict(os.environ),
    "files": open_files(),
    "input": os.readlink("/proc/self/fd/0"),
    "outputs": [Path(os.readlink(f"/proc/self/fd/{each}")).name for each in (1, 2)],
    "folder": str(Path.cwd()),
    "path_begins": sys.path[0],
    "handlers": {each.name: str(signal.getsignal(each)).partition(" at ")[0] for each in handled},
    "blocked": sorted(each.name for each in signal.pthread_sigmask(signal.SIG_BLOCK, ())),
    "umask": (os.umask(0o77), os.umask(0o77))[0],
    "data_limit": resource.getrlimit(resource.RLIMIT_DATA),
    "threads": threading.active_count(),
    "main": sys.modules["__main__"].__file__,
    "is_unbuffered": sys.stdout.write_through,
    "world": parse_run_spec(json.loads(spec)).parallel.world_size,
    "drawn": random.random(),
    "pid": os.getpid(),
}
sys.stdout.write("said\n")
(folder / f"who-{rank}.json").write_text(json.dumps(found))
