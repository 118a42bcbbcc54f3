"""The warm host (`labs.host`) from the side of whoever starts runs. Torch-free."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from labs.command import environment

IDLE_SECONDS = 900.0
_KILLED = 137  # a host that left no word, and its runs with it: 128 + SIGKILL
_POLL_SECONDS = 0.01
_END_SECONDS = 8.0


class WarmHost:
    """A host that is started when it is needed, and again where it has left or was killed. Thread-safe."""

    def __init__(self, idle_seconds: float = IDLE_SECONDS) -> None:
        self._idle_seconds = idle_seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._is_ready = False
        self._lock = threading.RLock()

    @property
    def pid(self) -> int | None:
        """Of the host that is there now."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    @property
    def is_ready(self) -> bool:
        """Whether it has loaded torch."""
        with self._lock:
            if not self._is_ready and self._control is not None:
                with contextlib.suppress(BlockingIOError, OSError):
                    self._is_ready = bool(self._control.recv(1, socket.MSG_DONTWAIT))
            return self._is_ready and self.pid is not None

    def warm_up(self) -> None:
        """Have it load torch, so that it is there when the first run comes. Returns at once."""
        with self._lock:
            if self.pid is None:
                self.close()
                ours, its = socket.socketpair()
                command = [sys.executable, "-P", "-u", "-m", "labs.host", "--idle-seconds", str(self._idle_seconds)]
                with its:
                    self._process = subprocess.Popen(
                        command, stdin=its.fileno(), env=environment(), cwd=os.sep, start_new_session=True
                    )
                self._control, self._is_ready = ours, False

    def start(self, command: Sequence[str], folder: Path, variables: Mapping[str, str], output: Path) -> WarmRun:
        """Start torchrun by its `command` in `folder`, with no other environment than `variables`, writing to
        `output`. Returns at once: a host that has yet to load torch starts it then. Raises OSError."""
        request = {"command": command, "folder": str(folder), "environment": variables, "output": str(output)}
        ours, its = socket.socketpair()
        with its:
            ours.settimeout(_END_SECONDS)
            ours.sendall(json.dumps(request).encode() + b"\n")
            try:
                self._send(its)
            except OSError:
                try:
                    self._send(its)  # it left just now, for want of something to do
                except OSError:
                    ours.close()
                    raise
        ours.setblocking(False)
        return WarmRun(self, ours)

    def _send(self, channel: socket.socket) -> None:
        with self._lock:
            self.warm_up()
            assert self._control is not None
            try:
                socket.send_fds(self._control, [b"+"], [channel.fileno()])
            except OSError:
                self.close()
                raise

    def close(self) -> None:
        """End the host and all that it runs."""
        with self._lock:
            if self._control is not None:
                self._control.close()
                self._control = None
            if self._process is not None:
                try:
                    self._process.wait(_END_SECONDS if self._is_ready else 0.2)  # while loading it hears nothing
                except subprocess.TimeoutExpired:
                    self._process.kill()
                    self._process.wait()
                self._process = None
            self._is_ready = False


class WarmRun:
    """torchrun as it was forked from the host: what a caller needs of a `subprocess.Popen`."""

    def __init__(self, host: WarmHost, channel: socket.socket) -> None:
        self._host, self._channel = host, channel
        self._said = b""
        self._is_asked_to_end = False
        self.pid: int | None = None  # once it was started
        self.returncode: int | None = None
        self.is_lost = False  # its host was killed

    def poll(self) -> int | None:
        """The exit code once it has ended: torchrun's own, 128 + n after signal n; 137 where the host was killed."""
        if self.returncode is None:
            self._listen()
        return self.returncode

    def _listen(self) -> None:
        try:
            said = self._channel.recv(4096)
        except BlockingIOError:
            return
        except OSError:
            said = b""
        self._said += said
        *lines, self._said = self._said.split(b"\n")
        for line in lines:
            word, _, number = line.partition(b" ")
            if word == b"started":
                self.pid = int(number)
            elif word == b"ended":
                self.returncode = int(number)
        if not said and self.returncode is None:
            self.returncode, self.is_lost = _KILLED, True
        if self.returncode is not None:
            self._channel.close()

    def wait(self, timeout: float | None = None) -> int:
        """The exit code. Raises subprocess.TimeoutExpired after `timeout` seconds."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            if deadline is not None and time.monotonic() >= deadline:
                raise subprocess.TimeoutExpired("torchrun", timeout or 0.0)
            time.sleep(_POLL_SECONDS)
        return code

    def end(self) -> None:
        """End it and its ranks; returns once they are gone."""
        if self.poll() is not None:
            return
        with contextlib.suppress(OSError):
            self._channel.shutdown(socket.SHUT_WR)  # all that the host waits for
        if not self._host.is_ready:  # it will find that this was taken back, and start nothing
            self.returncode = 143
            self._channel.close()
            return
        try:
            self.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._host.close()
            self.wait(_END_SECONDS)
