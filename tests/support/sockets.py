"""Which sockets a process and everything it started listen on."""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import threading
from dataclasses import dataclass, field

import psutil

POLL_SECONDS = 0.02


@dataclass(frozen=True, order=True)
class Listener:
    """An address somebody may connect or send to, and who waits there."""

    address: str
    port: int
    program: str

    @property
    def is_loopback(self) -> bool:
        return ipaddress.ip_address(self.address.partition("%")[0]).is_loopback


def tree(pid: int) -> list[psutil.Process]:
    """A process and all that descend from it."""
    try:
        root = psutil.Process(pid)
        return [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def listeners(pid: int) -> set[Listener]:
    """TCP sockets that listen, and UDP sockets that take from anybody, of a process and its descendants."""
    found = set()
    for process in tree(pid):
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            name = " ".join(process.cmdline()[:6])
            for each in process.net_connections(kind="inet"):
                waits = each.status == psutil.CONN_LISTEN or (each.type == socket.SOCK_DGRAM and not each.raddr)
                if waits and each.laddr:
                    found.add(Listener(each.laddr.ip, each.laddr.port, name))
    return found


@dataclass
class Watch:
    """Looks at a process's sockets over and over, from `with` on until it is left."""

    pid: int
    seen: set[Listener] = field(default_factory=set)
    looks: int = 0

    def __enter__(self) -> Watch:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._stop.wait(POLL_SECONDS):
            self.seen |= listeners(self.pid)
            self.looks += 1

    @property
    def outside(self) -> list[Listener]:
        return sorted(each for each in self.seen if not each.is_loopback)
