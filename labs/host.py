"""`python -m labs.host`: a process that keeps torch loaded, and starts runs from itself without loading it again.

Its standard input is one end of an unnamed Unix socket, whose other end is with whoever started it (`labs.warm`):
nobody else can reach it. Each byte that arrives there brings a socket of its own for one run: on it comes what is to be
started, as a line of JSON; back go `started PID` and `ended CODE`. The run ends when its socket is closed, and every
run ends with the socket the host was started with. Without anything to do for long enough, the host leaves.

For a run the host forks, and the fork becomes torchrun itself: the same command line as a cold start's, torch's own
agent, the same report of failures. The one thing changed is that where torchrun would start a Python that loads torch,
it forks too. The host therefore must never have a second thread, and never computes anything.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import selectors
import signal
import socket
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn

from labs.command import TORCHRUN
from labs.forked import be_torchrun, fork
from labs.preload import EVERY_STRATEGY, preload

READY = b"r"
GRACE_SECONDS = 1.0  # of a run that is to end
# What any run loads sooner or later, besides what strategies load when they are first used.
EVERY_RUN = (
    "torch.distributed.run",
    "torch.distributed.elastic.rendezvous.c10d_rendezvous_backend",
    "encodings.idna",
    "labs.console",
    "labs.pulse",
    "labs.loop",
    "labs.programs.running",
    *(
        f"labs.programs.{name}"
        for name in ("autograd", "collectives", "ddp", "failures", "formats", "gemm", "scaling", "speed")
    ),
    "labs.programs.schedule",
    "torch._dynamo",
)
_LONGEST_REQUEST_BYTES = 4 * 2**20


@dataclass
class Run:
    """A run that was started from here."""

    pid: int
    channel: socket.socket
    kill_at: float | None = None  # when it was asked to end: until then it may do so by itself


class Host:
    """Starts runs and ends them, one thread, one loop."""

    def __init__(self, control: socket.socket, idle_seconds: float) -> None:
        self._control, self._idle_seconds = control, idle_seconds
        self._runs: dict[int, Run] = {}
        self._selector = selectors.DefaultSelector()
        self._is_ending = False

    def serve(self) -> None:
        """Until whoever started us is gone, or there has been nothing to do for long."""
        woken, wakes = socket.socketpair()
        for each in (woken, wakes):
            each.setblocking(False)
        signal.set_wakeup_fd(wakes.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, self._note_end)
        self._selector.register(woken, selectors.EVENT_READ, partial(_drain, woken))
        self._selector.register(self._control, selectors.EVENT_READ, self._accept)
        self._control.sendall(READY)
        busy_at = time.monotonic()
        while not self._is_ending:
            for key, _ in self._selector.select(self._seconds_to_wait(busy_at)):
                key.data()
            self._look_after_runs()
            if self._runs:
                busy_at = time.monotonic()
            elif time.monotonic() - busy_at >= self._idle_seconds:
                return
        self._end_all()

    def _seconds_to_wait(self, busy_at: float) -> float | None:
        if self._runs:
            deadlines = [run.kill_at for run in self._runs.values() if run.kill_at is not None]
            return max(0.0, min(deadlines) - time.monotonic()) if deadlines else None
        return max(0.0, busy_at + self._idle_seconds - time.monotonic())

    def _note_end(self, *_: object) -> None:
        self._is_ending = True

    def _accept(self) -> None:
        """A byte with a run's socket, or the end of whoever sends them."""
        try:
            data, descriptors, _, _ = socket.recv_fds(self._control, 1, 1)
        except OSError:
            data, descriptors = b"", []
        if not data:
            self._is_ending = True
        for descriptor in descriptors:
            channel = socket.socket(fileno=descriptor)
            try:
                self._start(channel)
            except (OSError, ValueError, KeyError, TypeError) as error:
                sys.stderr.write(f"not started: {error}\n")
                channel.close()

    def _start(self, channel: socket.socket) -> None:
        request = _read_request(channel)
        channel.setblocking(False)
        if _is_over(channel):  # taken back while we loaded torch
            channel.close()
            return
        pid = fork(partial(be_torchrun, request, os.getpid()))
        run = self._runs[pid] = Run(pid, channel)
        self._selector.register(channel, selectors.EVENT_READ, partial(self._hear, run))
        _tell(channel, f"started {pid}\n")

    def _hear(self, run: Run) -> None:
        """Nothing is ever said there: what there is to hear is its end."""
        if _is_over(run.channel):
            self._selector.unregister(run.channel)
            self._end(run)

    def _end(self, run: Run) -> None:
        _signal_group(run.pid, signal.SIGTERM)
        run.kill_at = time.monotonic() + GRACE_SECONDS

    def _end_all(self) -> None:
        for run in self._runs.values():
            self._end(run)
        while self._runs:
            time.sleep(0.01)
            self._look_after_runs()

    def _look_after_runs(self) -> None:
        for run in list(self._runs.values()):
            pid, status = os.waitpid(run.pid, os.WNOHANG)
            if pid:
                self._forget(run, os.waitstatus_to_exitcode(status))
            elif run.kill_at is not None and time.monotonic() >= run.kill_at:
                _signal_group(run.pid, signal.SIGKILL)
                run.kill_at = time.monotonic() + GRACE_SECONDS

    def _forget(self, run: Run, code: int) -> None:
        _signal_group(run.pid, signal.SIGKILL)  # what it may have left
        del self._runs[run.pid]
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(run.channel)
        _tell(run.channel, f"ended {code if code >= 0 else 128 - code}\n")
        run.channel.close()


def _drain(woken: socket.socket) -> None:
    with contextlib.suppress(BlockingIOError):
        woken.recv(4096)


def _read_request(channel: socket.socket) -> dict[str, Any]:
    """What was written into the run's socket before it was sent here."""
    data = bytearray()
    while not data.endswith(b"\n"):
        found = channel.recv(65536)
        if not found or len(data) > _LONGEST_REQUEST_BYTES:
            raise ValueError("the request is no line of JSON")
        data += found
    request: dict[str, Any] = json.loads(data)
    if request["command"][: len(TORCHRUN)] != TORCHRUN:
        raise ValueError("the command is not this Python's torchrun")
    return request


def _is_over(channel: socket.socket) -> bool:
    try:
        return not channel.recv(4096)
    except BlockingIOError:
        return False
    except OSError:
        return True


def _tell(channel: socket.socket, line: str) -> None:
    with contextlib.suppress(OSError):  # nobody wants to know any more
        channel.sendall(line.encode())


def _signal_group(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        try:
            os.killpg(pid, number)
        except ProcessLookupError:  # it has no group of its own yet
            os.kill(pid, number)


def main(arguments: Iterable[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m labs.host", description="Keep torch loaded, and start runs.")
    parser.add_argument("--idle-seconds", type=float, required=True, help="how long to stay without a run")
    asked = parser.parse_args(list(arguments))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for whoever started us
    preload(*EVERY_STRATEGY, *EVERY_RUN)
    Host(socket.socket(fileno=0), asked.idle_seconds).serve()
    return 0


if __name__ == "__main__":
    code: NoReturn = sys.exit(main(sys.argv[1:]))
