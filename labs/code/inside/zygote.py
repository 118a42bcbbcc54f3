"""The first process of a sandbox: it has torch loaded and becomes a rank, by a fork, as often as the judge asks.

It reads nothing a learner wrote. Its standard input is a socket of the judge's; each byte that arrives there brings the
rank's channel and the pipe its output goes to. The forks are sealed (`seal`); this process is hidden from them.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import shutil
import signal
import socket
import sys
import tempfile
from pathlib import Path

import torch
import torch.distributed

from labs.code.inside import rank, seal

READY, WITH_OPTIMIZERS = b"r", b"o"
CONFINED = "RANKZERO_SANDBOX"  # set where the folder for files is the sandbox's own


def main() -> None:
    """Until the judge is gone."""
    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    rank.load_tasks()
    seal.hide()
    control = socket.socket(fileno=0)
    control.sendall(READY)
    while True:
        data, descriptors, _, _ = socket.recv_fds(control, 1, 2)
        if not data or len(descriptors) != 2:
            return
        if data == WITH_OPTIMIZERS:
            importlib.import_module("torch._dynamo")  # the first optimizer would load it: a second of every rank's
        pid = os.fork()
        if not pid:
            _become_rank(control, *descriptors)
        for each in descriptors:
            os.close(each)
        _, status = os.waitpid(pid, 0)
        _wipe()
        control.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())


def _wipe() -> None:
    """Nothing that a rank wrote is left for the next. Where that cannot be done this process ends, and the sandbox
    with it."""
    folder = Path(tempfile.gettempdir())
    if os.environ.get(CONFINED):
        for each in folder.iterdir():
            if each.is_dir() and not each.is_symlink():
                shutil.rmtree(each)
            else:
                each.unlink()


def _become_rank(control: socket.socket, channel: int, output: int) -> None:
    code = 1
    try:
        control.detach()
        null = os.open(os.devnull, os.O_RDONLY)
        moved = os.dup(channel)
        for target, source in ((0, null), (1, output), (2, output)):
            os.dup2(source, target)
        os.dup2(moved, 3)
        os.closerange(4, 1024)
        code = rank.be_rank(socket.socket(fileno=3))
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
