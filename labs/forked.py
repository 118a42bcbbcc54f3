"""torchrun and its ranks as forks of a process that has loaded torch (`labs.host`), instead of new processes.

A fork is made to be what a new process would be: a session, an environment, open files, signals and a random seed of
its own, and it dies with whoever forked it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import random
import runpy
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from labs.command import TORCHRUN
from labs.leash import PARENT, die_with

_SIGNALS = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGCHLD})
_PR_SET_NAME = 15  # <linux/prctl.h>


def fork(work: Callable[[], object]) -> int:
    """A child that does `work` as a program of its own, in a session of its own; its pid. Nothing of our handling of
    signals is left to it, not even for a moment."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    pid = os.fork()
    if pid:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return pid
    code = 1
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        for number in _SIGNALS:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        random.seed()  # else every run would draw the same
        code = _exit_code_of(work)
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)  # never back into the program we are a copy of


def _exit_code_of(work: Callable[[], object]) -> int:
    """As the interpreter would end: what was raised is printed."""
    try:
        work()
    except SystemExit as ending:
        if ending.code is None or isinstance(ending.code, int):
            return ending.code or 0
        sys.stderr.write(f"{ending.code}\n")
        return 1
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def be_torchrun(request: Mapping[str, Any], host: int) -> None:
    """In a fork of the host: torchrun, with ranks that are forks of it."""
    die_with(host)
    _name_process("torchrun")
    os.chdir(request["folder"])
    _replace_environment({**request["environment"], PARENT: str(os.getpid())})
    output = os.open(request["output"], os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    _keep_only(os.open(os.devnull, os.O_RDONLY), output, output)
    from torch.distributed import run as torchrun  # noqa: PLC0415 - loaded by the host
    from torch.distributed.elastic.multiprocessing import api  # noqa: PLC0415

    api.get_subprocess_handler = _rank_handler()  # type: ignore[attr-defined]
    sys.argv = [torchrun.__file__ or "torchrun", *request["command"][len(TORCHRUN) :]]
    torchrun.main(sys.argv[1:])


def _rank_handler() -> type:
    """torchrun's handler of a rank's process, but for how that process comes about."""
    from torch.distributed.elastic.multiprocessing.subprocess_handler import SubprocessHandler  # noqa: PLC0415

    class ForkedRank(SubprocessHandler):
        def _popen(self, args: tuple[str, ...], env: dict[str, str]) -> Forked:  # type: ignore[override]
            descriptors = [file.fileno() if file else number for number, file in ((1, self._stdout), (2, self._stderr))]
            return Forked(fork(partial(_be_rank, args, env, descriptors, os.getpid())))

    return ForkedRank


class Forked:
    """A child of ours with what torchrun asks of a `subprocess.Popen`."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """The exit code. Raises subprocess.TimeoutExpired after `timeout` seconds."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            if deadline is not None and time.monotonic() >= deadline:
                raise subprocess.TimeoutExpired(f"rank with pid {self.pid}", timeout or 0.0)
            time.sleep(0.005)
        return code


def _be_rank(command: tuple[str, ...], variables: Mapping[str, str], outputs: list[int], torchrun: int) -> None:
    """In a fork of torchrun: `python -u -m MODULE ...` or `python -u SCRIPT ...`, as its command line says."""
    die_with(torchrun)
    _name_process(f"rank {variables['RANK']}")
    _replace_environment(variables)
    _keep_only(0, *outputs)
    words = [word for word in command[1:] if word != "-u"]
    if words[0] == "-m":
        sys.path.insert(0, str(Path.cwd()))
        sys.argv = words[1:]
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    else:
        sys.path.insert(0, str(Path(words[0]).resolve().parent))
        sys.argv = words
        runpy.run_path(words[0], run_name="__main__")


def _name_process(name: str) -> None:
    """What `ps` and `top` call this process: its command line is still the host's."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_NAME, f"rz {name}".encode(), 0, 0, 0)


def _replace_environment(variables: Mapping[str, str]) -> None:
    os.environ.clear()
    os.environ.update(variables)


def _keep_only(*standard: int) -> None:
    """Input, output and error as given, and no other open file: those are the business of whoever we are a copy of."""
    copies = [os.dup(each) for each in standard]
    for number, copy in enumerate(copies):
        os.dup2(copy, number)
    os.closerange(len(standard), os.sysconf("SC_OPEN_MAX"))
