"""The product as a user starts it: `rankzero start` on a free port with a data folder of its own."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import psutil

READY_SECONDS = 150.0  # longer than a start waits itself
ENDS_SECONDS = 120.0  # a busy machine is slow, not wrong
REPLY_SECONDS = 60.0
CARELESS = ("sh", "-c", 'umask 0; exec nohup "$@"', "sh")  # everybody may write its new files; it outlives its terminal


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@dataclass
class Site:
    """What answers a browser, and how a test asks it past the browser."""

    url: str
    data: Path

    def get_json(self, path: str) -> Any:
        with urllib.request.urlopen(f"{self.url}{path}", timeout=REPLY_SECONDS) as reply:
            return json.load(reply)

    def post_json(self, path: str, body: Any, **headers: str) -> tuple[int, Any]:
        data = json.dumps(body).encode()
        request = urllib.request.Request(
            f"{self.url}{path}", data, {"Content-Type": "application/json", "Accept": "application/json", **headers}
        )
        try:
            with urllib.request.urlopen(request, timeout=REPLY_SECONDS) as reply:
                return reply.status, json.load(reply)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def post_form(self, path: str, **fields: str) -> int:
        """The status of the page that a sent form leads to."""
        data = urllib.parse.urlencode(fields).encode()
        with urllib.request.urlopen(f"{self.url}{path}", data, timeout=REPLY_SECONDS) as reply:
            status: int = reply.status
            return status


@dataclass
class Product(Site):
    """A running product."""

    process: subprocess.Popen[bytes]
    output: IO[bytes]

    def children(self) -> list[psutil.Process]:
        """Every process it started, directly or not."""
        return psutil.Process(self.process.pid).children(recursive=True)

    def said(self) -> str:
        """What `start` has said so far."""
        return os.pread(self.output.fileno(), os.fstat(self.output.fileno()).st_size, 0).decode()

    def ended(self) -> str:
        """Waits until `start` has ended by itself; returns what it said."""
        self.process.wait(ENDS_SECONDS)
        return self.said()

    def stop(self) -> str:
        """Ctrl-C; returns what it said."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        return self.ended()


def environment(data: Path, **extra: str) -> dict[str, str]:
    """A user's environment: none of our settings but where to write."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("RANKZERO_")}
    return {**clean, "RANKZERO_DATA": str(data), **extra}


def launch(
    data: Path, port: int, before: Sequence[str] = (), host: str = "127.0.0.1", warm: bool = False, **extra: str
) -> Product:
    """Start without waiting; `before` is put in front of the command.

    Without `warm` the worker holds no process with torch loaded: who submits no run need not wait for it.
    """
    extra = extra if warm else {"RANKZERO_WARM": "0", **extra}
    output = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the product is looked at; a pipe could fill
    process = subprocess.Popen(
        [*before, sys.executable, "-m", "app.cli", "start", "--port", str(port)],
        env=environment(data, **extra),
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    return Product(f"http://{host}:{port}", data, process, output)


def wait_until_ready(product: Product) -> None:
    """Until every part answers, workers included, and `start` has said where."""
    deadline = time.monotonic() + READY_SECONDS
    while True:
        with contextlib.suppress(urllib.error.URLError, OSError):
            if product.get_json("/readyz")["status"] == "ready" and "RankZero is at" in product.said():
                return
        if product.process.poll() is not None or time.monotonic() > deadline:
            product.process.kill()
            raise RuntimeError(f"the product did not come up:\n{product.ended()}")
        time.sleep(0.1)


@contextlib.contextmanager
def running_product(
    data: Path, warm: bool = False, host: str = "127.0.0.1", before: Sequence[str] = (), **extra: str
) -> Iterator[Product]:
    """A product that is up, and gone afterwards with everything it started."""
    product = launch(data, free_port(), before, host, warm, **extra)
    started: list[psutil.Process] = []
    try:
        wait_until_ready(product)
        started = product.children()
        yield product
    finally:
        started += product.children() if product.process.poll() is None else []
        with contextlib.suppress(subprocess.TimeoutExpired):
            product.stop()
        if product.process.poll() is None:
            product.process.kill()
        for process in started:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()


class SharedProduct:
    """One product for the tests of several files, from a careless shell and without its hangup. Whoever ends it harms
    nobody: the next that asks starts another."""

    def __init__(self, new_folder: Callable[[], Path]) -> None:
        self._new_folder = new_folder
        self._running = contextlib.ExitStack()
        self._product: Product | None = None

    def up(self) -> Product:
        if self._product is None or self._product.process.poll() is not None:
            self.close()
            start = running_product(self._new_folder() / "var", warm=True, before=CARELESS)
            self._product = self._running.enter_context(start)
        return self._product

    def close(self) -> None:
        self._running.close()
