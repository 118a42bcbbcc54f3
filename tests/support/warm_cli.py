"""`rankzero …` from a process that has loaded the application and the content: for a test that starts it many times.

A fork of that process is the command, with a process, an environment and signals of its own; only what takes seconds,
loading, was done before.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass


@dataclass
class Forked:
    """A command that was started."""

    cli: WarmCli
    pid: int
    code: int | None = None

    def poll(self) -> int | None:
        """The exit code once it has ended, -n after signal n."""
        if self.code is None:
            self.code = self.cli.ask(poll=self.pid)
        return self.code

    def wait(self) -> int:
        if self.code is None:
            self.code = self.cli.ask(wait=self.pid)
        assert self.code is not None
        return self.code

    def kill(self) -> None:
        if self.code is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)


class WarmCli:
    """The process that forks, from the side of a test."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "tests.support.warm_cli"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def start(self, arguments: Sequence[str], environment: Mapping[str, str]) -> Forked:
        """`rankzero ARGUMENTS` in `environment`."""
        pid = self.ask(start=list(arguments), environment=dict(environment))
        assert pid is not None
        return Forked(self, pid)

    def ask(self, **request: object) -> int | None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer: int | None = json.loads(self._process.stdout.readline())
        return answer

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(120)  # a busy machine is slow, not wrong


@contextmanager
def warm_cli() -> Iterator[WarmCli]:
    cli = WarmCli()
    try:
        yield cli
    finally:
        cli.close()


def _serve() -> None:
    """One thread and no connection: nothing that a fork could not take along."""
    import app.main  # noqa: F401
    from app.content.catalogue import catalogue

    catalogue()
    for line in sys.stdin:
        request = json.loads(line)
        sys.stdout.write(json.dumps(_answer(request)) + "\n")
        sys.stdout.flush()


def _answer(request: dict[str, object]) -> int | None:
    if "start" in request:
        return _start(request)
    pid = request.get("wait", request.get("poll"))
    assert isinstance(pid, int)
    ended, status = os.waitpid(pid, 0 if "wait" in request else os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if ended else None


def _start(request: dict[str, object]) -> int:
    arguments, environment = request["start"], request["environment"]
    assert isinstance(arguments, list)
    assert isinstance(environment, dict)
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        os.dup2(os.open(os.devnull, os.O_RDWR), 0)
        os.dup2(0, 1)
        os.environ.clear()
        os.environ.update(environment)
        from app.cli import main
        from app.core.settings import settings

        settings.cache_clear()
        sys.argv = ["rankzero", *arguments]
        main()
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    finally:
        os._exit(code)


if __name__ == "__main__":
    _serve()
