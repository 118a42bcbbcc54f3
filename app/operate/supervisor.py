"""Starts the product's processes, watches them, restarts one that dies and ends all of them together.

Each child runs on a leash (`labs.leash`): in a session of its own, so that Ctrl-C reaches only us, and tied to a pipe
we hold, so that it ends even when we are killed without a word.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

MAX_CRASHES = 5
CRASH_WINDOW_SECONDS = 60.0
GRACE_SECONDS = 8.0
POLL_SECONDS = 0.1


@dataclass
class Child:
    """One process of the product."""

    name: str
    command: list[str]
    is_service: bool = False
    process: subprocess.Popen[bytes] | None = None
    crashes: deque[float] = field(default_factory=lambda: deque(maxlen=MAX_CRASHES))
    restart_at: float | None = None


class Supervisor:
    """Owns the children from start to end."""

    def __init__(self, environment: Mapping[str, str], log_folder: Path, say: Callable[[str], None]) -> None:
        self.environment = {**os.environ, **environment}
        self.log_folder = log_folder
        self.say = say
        self.children: list[Child] = []
        self.on_change: Callable[[], None] = lambda: None
        self._stop_signal: int | None = None

    def start(self, name: str, command: list[str], *, is_service: bool = False) -> Child:
        """Start and watch `command`; a service is what other children need until their own end."""
        child = Child(name, command, is_service)
        self.children.append(child)
        self._launch(child)
        return child

    def log_path(self, child: Child) -> Path:
        return self.log_folder / f"{child.name}.log"

    def pids(self) -> dict[str, int]:
        return {child.name: child.process.pid for child in self.children if child.process is not None}

    def _launch(self, child: Child) -> None:
        self.log_folder.mkdir(parents=True, exist_ok=True)
        with self.log_path(child).open("ab") as log:
            child.process = subprocess.Popen(
                [sys.executable, "-m", "labs.leash", "--", *child.command],
                stdin=subprocess.PIPE,  # the leash: our death closes it
                stdout=log,
                stderr=log,
                env=self.environment,
                start_new_session=True,
            )
        child.restart_at = None

    def listen_to_signals(self) -> None:
        """Remember SIGINT, SIGTERM and SIGHUP; the watch loop acts on them."""

        def remember(number: int, _frame: FrameType | None) -> None:
            self._stop_signal = number

        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            # `nohup` has us outlive the terminal; a script that starts us in the background ignores SIGINT for us,
            # and means to end us by it all the same
            if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, remember)

    @property
    def asked_to_stop(self) -> bool:
        return self._stop_signal is not None

    def watch(self) -> int:
        """Keep the children alive until we are told to stop. Returns the exit code."""
        while not self.asked_to_stop:
            for child in self.children:
                if not self.revive(child):
                    return 1
            time.sleep(POLL_SECONDS)
        return 0

    def revive(self, child: Child) -> bool:
        """Restart `child` if it died, after a growing pause; False when it keeps dying."""
        assert child.process is not None
        now = time.monotonic()
        if child.restart_at is not None:
            if now >= child.restart_at:
                self._launch(child)
                self.on_change()
            return True
        code = child.process.poll()
        if code is None:
            return True
        child.crashes.append(now)
        recent = [at for at in child.crashes if now - at < CRASH_WINDOW_SECONDS]
        if len(recent) >= MAX_CRASHES:
            self.say(
                f"{child.name} ended {len(recent)} times within a minute, last with {_ending(code)}. Its last lines:"
            )
            self.say(self.last_lines(child))
            return False
        pause = 0.5 * 2 ** (len(recent) - 1)
        self.say(
            f"{child.name} ended with {_ending(code)}; starting it again in {pause:g} s. Log: {self.log_path(child)}"
        )
        child.restart_at = now + pause
        return True

    def last_lines(self, child: Child, count: int = 12) -> str:
        try:
            lines = self.log_path(child).read_text(errors="replace").splitlines()[-count:]
        except OSError:
            lines = []
        return "\n".join(f"  | {line}" for line in lines) or "  | (it wrote nothing)"

    def stop(self) -> None:
        """End every child, politely, then not: services last, which the others still talk to while they end."""
        for is_service in (False, True):
            alive = [
                child.process
                for child in reversed(self.children)
                if child.is_service is is_service and child.process and child.process.poll() is None
            ]
            for process in alive:
                process.terminate()
            deadline = time.monotonic() + GRACE_SECONDS
            for process in alive:
                _wait_or_kill(process, deadline)


def _wait_or_kill(process: subprocess.Popen[bytes], deadline: float) -> None:
    try:
        process.wait(max(0.1, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _ending(code: int) -> str:
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
