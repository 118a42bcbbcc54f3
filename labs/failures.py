"""What went wrong on a rank, by a name that a learner can look up. Torch-free.

When one rank fails, the others fail too: their next collective finds a closed connection, or torchrun
ends them. Only the first failure is the cause; the rest is reported as what it is, a lost peer.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from typing import NoReturn

from labs.lifeline import living_siblings
from labs.probes.report import Reporter

OUT_OF_MEMORY = "out of memory"
DISK_FULL = "disk full"
LOST_RANK = "lost another rank"

_EXIT_FAILED = 1
_TRACEBACK_LINES = 20
_last_word = threading.Lock()  # the thread that takes it says why the rank ends, and ends it

# As gloo, NCCL and the store put it. Matched in lower case.
_LOST_RANK_PHRASES = (
    "connection closed by peer",
    "connection reset by peer",
    "connection refused",
    "connection was likely closed",
    "broken pipe",
    "timed out waiting",
    "socket timeout",
    "wait timeout",
    "application timeout caused pair closure",
    "remote process exited",
    "watchdog caught collective operation timeout",
    "connectfullmesh failed",
)
_OUT_OF_MEMORY_PHRASES = ("can't allocate memory", "not enough memory", "cuda out of memory")


class CannotStartError(Exception):
    """The run cannot start as asked. `cause` names why; the message tells what would work."""

    def __init__(self, cause: str, message: str) -> None:
        self.cause = cause
        super().__init__(message)


class CannotGoOnError(CannotStartError):
    """The run cannot go on: `cause` names why."""


def name_cause(error: BaseException) -> str:
    """A short, stable name for `error`; the exception's own type where there is no better one.

    Libraries wrap what went wrong: a pipeline schedule, say, raises an error of its own from the lost connection. So
    the errors that led to `error` are asked as well.
    """
    return _named(error)[1]


def _named(error: BaseException) -> tuple[BaseException, str]:
    """The error that says best what went wrong, of `error` and those that led to it, and its name."""
    for each in _chain(error):
        name = _known_name(each)
        if name is not None:
            return each, name
    return error, type(error).__name__


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """`error` and what led to it, as a traceback shows them, the last first."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _known_name(error: BaseException) -> str | None:
    if isinstance(error, CannotStartError):
        return error.cause
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DISK_FULL
    types = {kind.__name__ for kind in type(error).__mro__}  # by name: this module does not load torch
    message = str(error).lower()
    if types & {"OutOfMemoryError", "MemoryError"} or any(p in message for p in _OUT_OF_MEMORY_PHRASES):
        return OUT_OF_MEMORY
    if isinstance(error, RuntimeError | OSError) and any(p in message for p in _LOST_RANK_PHRASES):
        return LOST_RANK
    return None


def fail(reporter: Reporter, error: BaseException) -> NoReturn:
    """End this rank because of `error`: the end of the traceback as log lines, then the `failed` phase."""
    _last_word.acquire()
    lines = "".join(traceback.format_exception(error)).rstrip().splitlines()
    said, cause = _named(error)
    with contextlib.suppress(OSError):  # where there is no room for a word, the exit code must do
        for line in lines[-_TRACEBACK_LINES:]:
            reporter.log("stderr", line)
        reporter.failed(cause, _first_line(str(said)) or type(said).__name__)
        sys.stderr.write("\n".join(lines) + "\n")
    exit_at_once(_EXIT_FAILED)


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0][:500]


def end_on_signal(reporter: Reporter, local_world_size: int) -> None:
    """torchrun sends SIGTERM to the ranks that are left when one has failed. When it is itself told to end,
    it passes on to the ranks what it got: SIGTERM, or SIGINT after Ctrl-C. End at once in either case.

    In the first case the rank says that it lost another: its next collective would have told it so, had it
    got that far. A thread waits for the signals, because a handler would run only once the main thread is
    back from whatever it computes, and by then everybody else may be gone. Call this before other threads
    are started: they inherit that the signals are not for them.
    """
    awaited = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, awaited)

    def wait() -> None:
        number = signal.sigwait(awaited)
        alive = living_siblings()
        _last_word.acquire()
        if alive is not None and alive < local_world_size:
            reporter.failed(LOST_RANK, "torchrun ended this rank, because another rank was gone")
        else:
            time.sleep(0.2)  # so that a sibling, told a moment later, does not take our end for a failure
        os._exit(128 + number)

    threading.Thread(target=wait, name="end-on-signal", daemon=True).start()


def exit_at_once(code: int) -> NoReturn:
    """Leave without closing down, `destroy_process_group` included. After a failure that could wait for ranks that
    wait for this one. And even after success it may hang: it waits for gloo's threads while it holds Python's global
    lock, and one of those threads may need the lock to drop the last reference to a tensor (seen in 1 run of 5)."""
    with contextlib.suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)
