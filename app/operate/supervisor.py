"""Starts the product's processes, watches them, restarts one that dies and ends all of them together.

One that keeps dying is restarted after ever longer pauses, and the others live on: whatever makes the page die, five
times or fifty, a run under way is none of its business. What keeps dying is noted where `/readyz` reads it.

Each child runs on a leash (`labs.leash`): in a session of its own, so that Ctrl-C reaches only us, and tied to a pipe
we hold, so that it ends even when we are killed without a word.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import BinaryIO

from labs.leash import on_leash

MANY_CRASHES = 5  # in a row: then it is said with its last lines, and in /readyz
STEADY_SECONDS = 60.0  # one that lived as long has recovered
FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 30.0
GRACE_SECONDS = 8.0
POLL_SECONDS = 0.1


@dataclass
class Child:
    """One process of the product."""

    name: str
    command: list[str]
    is_service: bool = False
    process: subprocess.Popen[bytes] | None = None
    crashes: int = 0  # since it last was steady
    last_ending: str = ""
    started_at: float = 0.0
    restart_at: float | None = None

    @property
    def trouble(self) -> str:
        """What is wrong with one that keeps dying, or nothing."""
        if self.crashes < MANY_CRASHES:
            return ""
        return f"ended {self.crashes} times in a row, last with {self.last_ending}; it is started again and again"


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

    def troubles(self) -> dict[str, str]:
        """What keeps dying, and how."""
        return {child.name: child.trouble for child in self.children if child.trouble}

    def _launch(self, child: Child) -> None:
        with self._open_log(child) as log:
            child.process = subprocess.Popen(
                on_leash(child.command),
                stdin=subprocess.PIPE,  # the leash: our death closes it
                stdout=log,
                stderr=log,
                env=self.environment,
                start_new_session=True,
            )
        child.started_at, child.restart_at = time.monotonic(), None

    def _open_log(self, child: Child) -> BinaryIO:
        try:
            self.log_folder.mkdir(parents=True, exist_ok=True)
            return self.log_path(child).open("ab")
        except OSError:  # a full disk: better without a log than not at all
            return Path(os.devnull).open("ab")

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
        """Keep the children alive until we are told to stop. Returns the exit code, 0: nothing else ends it."""
        while not self.asked_to_stop:
            for child in self.children:
                self.revive(child)
            time.sleep(POLL_SECONDS)
        return 0

    def revive(self, child: Child) -> None:
        """Restart `child` if it died, after a growing pause."""
        assert child.process is not None
        now = time.monotonic()
        if child.restart_at is not None:
            if now >= child.restart_at:
                self._launch(child)
                self.on_change()
            return
        code = child.process.poll()
        if code is None:
            if child.crashes and now - child.started_at >= STEADY_SECONDS:
                child.crashes = 0
                self.on_change()
            return
        child.crashes, child.last_ending = child.crashes + 1, _ending(code)
        pause = min(FIRST_PAUSE_SECONDS * 2 ** (child.crashes - 1), LONGEST_PAUSE_SECONDS)
        child.restart_at = now + pause
        self.say(
            f"{child.name} ended with {_ending(code)}; starting it again in {pause:g} s. Log: {self.log_path(child)}"
        )
        if child.crashes == MANY_CRASHES:
            self.say(f"{child.name} {child.trouble}. The rest goes on. Its last lines:")
            self.say(self.last_lines(child))
        self.on_change()

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
