"""`python -m labs.leash [--grace SECONDS] -- COMMAND...`: run a command that ends when whoever started it dies.

The starter keeps the other end of this process's standard input open and never writes to it. When the
starter dies, even by SIGKILL, the kernel closes that end, this process reads end-of-file and ends the
command. SIGTERM and SIGINT end it as well. The exit code is the command's (128 + n after signal n).

Torch-free, and tiny: it is resident for the whole of a run.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from functools import partial
from types import FrameType

from labs.lifeline import PARENT, die_with

GRACE_SECONDS = 3.0
_POLL_SECONDS = 0.05


def main(arguments: list[str]) -> int:
    grace_seconds = GRACE_SECONDS
    if arguments[:1] == ["--grace"] and len(arguments) > 1:
        grace_seconds, arguments = float(arguments[1]), arguments[2:]
    if arguments[:1] != ["--"] or len(arguments) < 2:
        sys.stderr.write("usage: python -m labs.leash [--grace SECONDS] -- COMMAND...\n")
        return 2
    asked_to_end = threading.Event()

    def ask(_signal: int, _frame: FrameType | None) -> None:
        asked_to_end.set()

    signal.signal(signal.SIGTERM, ask)
    signal.signal(signal.SIGINT, ask)
    # A session of its own: signals sent to our group, such as Ctrl-C, reach the command through us alone,
    # and everything the command starts can be signalled as one group.
    command = subprocess.Popen(
        arguments[1:],
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=partial(_before_exec, os.getpid()),  # noqa: PLW1509 - no thread exists yet; covers our own SIGKILL
    )
    threading.Thread(target=_wait_for_end_of_file, args=(asked_to_end,), daemon=True).start()
    while command.poll() is None:
        if asked_to_end.wait(_POLL_SECONDS):
            _end(command, grace_seconds)
    return _exit_code(command.wait())


def _before_exec(leash: int) -> None:
    """In the command's process: it dies with us, and its children learn its pid, which exec keeps."""
    die_with(leash)
    os.environ[PARENT] = str(os.getpid())


def _wait_for_end_of_file(asked_to_end: threading.Event) -> None:
    while os.read(0, 4096):
        pass
    asked_to_end.set()


def _end(command: subprocess.Popen[bytes], grace_seconds: float) -> None:
    """SIGTERM to the command's whole group; SIGKILL to what is left of it after the grace period."""
    _signal_group(command, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        command.wait(grace_seconds)
    _signal_group(command, signal.SIGKILL)
    command.wait()


def _signal_group(command: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):  # macOS: "not permitted" for a group of zombies
        os.killpg(command.pid, number)


def _exit_code(returncode: int) -> int:
    return returncode if returncode >= 0 else 128 - returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
