"""Which sockets a process and everything it started listen on."""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil

POLL_SECONDS = 0.02
TABLES = [Path("/proc/net", name) for name in ("tcp", "tcp6", "udp", "udp6")]
LISTENS, TAKES_FROM_ANYBODY = "0A", "07"  # the state of a TCP socket that listens, of a UDP socket without a peer


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


def waiting() -> Iterator[str]:
    """The same of the whole machine, each by the number that the system gave its socket. Only where there is /proc."""
    for table in TABLES:
        with contextlib.suppress(FileNotFoundError):
            for line in table.read_text().splitlines()[1:]:
                columns = line.split()
                if columns[3] == (TAKES_FROM_ANYBODY if table.name.startswith("udp") else LISTENS):
                    yield columns[9]


@dataclass
class Watch:
    """Looks at a process's sockets over and over, from `with` on until it is left.

    Who owns a socket is asked of every process's open files, which takes longer than the pause between two looks: only
    where the machine has a socket that was not there at the look before.
    """

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
        known: set[str] = set()
        has_tables = TABLES[0].exists()
        while not self._stop.wait(POLL_SECONDS):
            now = set(waiting())
            if now - known or not has_tables:
                self.seen |= listeners(self.pid)
            known = now
            self.looks += 1

    @property
    def outside(self) -> list[Listener]:
        return sorted(each for each in self.seen if not each.is_loopback)
