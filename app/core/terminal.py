"""How a command talks to its terminal, and how it gives way to another."""

from __future__ import annotations

import os
import subprocess
import sys


def say(text: str) -> None:
    """A line on standard output, at once: who reads it through a pipe may be waiting for it."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def become(command: list[str]) -> None:
    """Replace this process, so that signals and exit codes need nobody in between."""
    if sys.platform == "win32":
        raise SystemExit(subprocess.call(command))
    os.execv(command[0], command)  # noqa: S606 - our own interpreter
