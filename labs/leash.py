"""`leash.py [--grace SECONDS] -- COMMAND...`: run a command that ends when whoever started it dies.

The starter keeps the other end of this process's standard input open and never writes to it. When the
starter dies, even by SIGKILL, the kernel closes that end, this process reads end-of-file and ends the
command. SIGTERM and SIGINT end it as well. The exit code is the command's (128 + n after signal n).

One stands beside each process of the product and each cold run, so it is tiny, and is started without site-packages
(`on_leash`): it may import nothing but light modules of the standard library.
"""

from __future__ import annotations

import os
import select
import signal
import sys
from collections.abc import Sequence

PARENT = "RANKZERO_TORCHRUN_PID"  # set for the command, so that what it starts knows whose death is its own
GRACE_SECONDS = 3.0
_PR_SET_PDEATHSIG = 1  # <linux/prctl.h>
_CANNOT_START = 127  # as a shell says it


def on_leash(command: Sequence[str], grace_seconds: float = GRACE_SECONDS) -> list[str]:
    """The command line that runs `command` on a leash; whoever starts it gives it a pipe as standard input."""
    # by its file and without site-packages: a tenth of what `-m labs.leash` takes to start
    return [sys.executable, "-I", "-S", os.path.abspath(__file__), "--grace", f"{grace_seconds:g}", "--", *command]


def main(arguments: list[str]) -> int:
    grace_seconds = GRACE_SECONDS
    if arguments[:1] == ["--grace"] and len(arguments) > 1:
        grace_seconds, arguments = float(arguments[1]), arguments[2:]
    if arguments[:1] != ["--"] or len(arguments) < 2:
        sys.stderr.write("usage: leash.py [--grace SECONDS] -- COMMAND...\n")
        return 2
    woken = _wake_at((signal.SIGTERM, signal.SIGINT, signal.SIGCHLD))
    pid = _start(arguments[1:])
    code = _follow(pid, woken)
    if code is None:
        code = _end(pid, woken, grace_seconds)
    return code if code >= 0 else 128 - code


def _wake_at(numbers: Sequence[signal.Signals]) -> int:
    """From now on each of these signals is a byte to be read from the descriptor that is returned."""
    woken, wakes = os.pipe()
    for each in (woken, wakes):
        os.set_blocking(each, False)
    signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
    for number in numbers:
        signal.signal(number, lambda *_: None)
    return woken


def _start(command: list[str]) -> int:
    """The command in a session of its own: signals sent to our group, such as Ctrl-C, reach it through us alone, and
    everything it starts can be signalled as one group."""
    leash = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        for number in (signal.SIGPIPE, signal.SIGXFSZ):  # which Python ignores for itself
            signal.signal(number, signal.SIG_DFL)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        die_with(leash)  # covers our own SIGKILL
        os.environ[PARENT] = str(os.getpid())  # exec keeps it
        os.execvp(command[0], command)  # noqa: S606 - a command, not a shell's line
    except OSError as error:
        sys.stderr.write(f"{command[0]} cannot be started: {error.strerror}.\n")
        sys.stderr.flush()
    finally:
        os._exit(_CANNOT_START)  # never back into the program we are a copy of


def _follow(pid: int, woken: int) -> int | None:
    """Wait until the command has ended, and return how; None as soon as it is to be ended."""
    waiting = select.poll()
    waiting.register(0, select.POLLIN)
    waiting.register(woken, select.POLLIN)
    while True:
        for ready, _ in waiting.poll():
            if ready == 0:
                if not os.read(0, 4096):
                    return _ending(pid)
            elif {signal.SIGTERM, signal.SIGINT} & set(os.read(woken, 4096)):
                return _ending(pid)
        code = _ending(pid)
        if code is not None:
            return code


def _end(pid: int, woken: int, grace_seconds: float) -> int:
    """SIGTERM to the command's whole group; SIGKILL to what is left of it after the grace period, or after its end."""
    import time  # noqa: PLC0415 - nearly no leash gets to here before its last moment

    _signal_group(pid, signal.SIGTERM)
    deadline = time.monotonic() + grace_seconds
    waiting = select.poll()
    waiting.register(woken, select.POLLIN)
    code = _ending(pid)
    while code is None and (left := deadline - time.monotonic()) > 0:
        for ready, _ in waiting.poll(1000 * left):
            os.read(ready, 4096)
        code = _ending(pid)
    _signal_group(pid, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) if code is None else code


def _ending(pid: int) -> int | None:
    """How the command ended; None while it works."""
    ended, status = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if ended else None


def _signal_group(pid: int, number: signal.Signals) -> None:
    try:  # noqa: SIM105 - contextlib is not worth its import here
        os.killpg(pid, number)
    except (ProcessLookupError, PermissionError):  # macOS: "not permitted" for a group of zombies
        pass


def ask_kernel_to_die_with_parent() -> bool:
    """Have Linux send SIGKILL to this process at its parent's death; False where there is no such service.

    The request survives exec, so that a parent may also make it in the child it has just forked.
    """
    if sys.platform != "linux":
        return False
    import ctypes  # noqa: PLC0415 - the command's side needs it, the leash does not

    libc = ctypes.CDLL(None, use_errno=True)
    return bool(libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) == 0)


def die_with(parent: int) -> None:
    """In a child just forked from `parent`, before exec: it dies with its parent, even one that is dead by now."""
    ask_kernel_to_die_with_parent()
    if os.getppid() != parent:
        os._exit(128 + signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
