"""`python -m tests.bench.crowd URL TOKEN`: viewers of runs in a process of its own, which takes what no rank wants.

Viewers do not sit on the machine that trains. So that theirs is not measured as what the product costs, this process
runs at idle priority, within its session and, where Linux shares cores out to sessions first, as a session.

It reads commands: `look PATH COUNT` has so many connect, and is answered once they are there; `leave` has all of them
go, and is answered with what they got; the end of its input ends it.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

# A viewer is told a chunk's number before its kind. A client that read line by line would take more of the machine than
# the server that is measured.
_CHUNK = re.compile(rb"id: (\d+)\r\nevent: chunk\r\n")
_LONGEST_HEAD = 64
_LOWEST = 19  # niceness


@dataclass
class Viewer:
    """What one connection got: numbers of chunks, and whether the end came."""

    chunks: list[int] = field(default_factory=list)
    has_ended: bool = False

    @property
    def missed(self) -> bool:
        """Whether a chunk was left out, or came twice, among those it got."""
        return bool(self.chunks) and self.chunks != list(range(1, self.chunks[-1] + 1))


async def look_on(url: str, path: str, viewers: int, token: str) -> list[Viewer]:
    """So many viewers, until the run has ended."""
    every = [Viewer() for _ in range(viewers)]
    await asyncio.gather(*(watch(viewer, url, path, token) for viewer in every))
    return every


async def watch(viewer: Viewer, url: str, path: str, token: str, there: asyncio.Event | None = None) -> None:
    """One viewer, until the run has ended; `there` is set once anything has come."""
    host, port = urlsplit(url).hostname, urlsplit(url).port
    reader, writer = await asyncio.open_connection(host, port, limit=1 << 24)
    # as browsers bring their cookie: of who brings nothing the kernel is asked, for each connection
    who = f"Host: {host}:{port}\r\nAuthorization: Bearer {token}\r\nAccept: text/event-stream"
    writer.write(f"GET {path} HTTP/1.1\r\n{who}\r\n\r\n".encode())
    tail = b""
    try:
        while not viewer.has_ended and (piece := await reader.read(1 << 20)):
            if there is not None:
                there.set()
            tail += piece
            over = 0
            for found in _CHUNK.finditer(tail):
                viewer.chunks.append(int(found[1]))
                over = found.end()
            viewer.has_ended = b"event: end\r\n" in tail
            tail = tail[max(over, len(tail) - _LONGEST_HEAD) :]
    finally:
        writer.close()


class Crowd:
    """The process, from the side of the benchmark."""

    def __init__(self, url: str, token: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.bench.crowd", url, token],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.pid = self._process.pid
        self._ask("ready")

    def look(self, path: str, viewers: int) -> None:
        """Returns once all of them are there."""
        self._ask(f"look {path} {viewers}")

    def leave(self) -> dict[str, int]:
        """How many looked on, and how many of them missed something."""
        return {key: int(value) for key, value in self._ask("leave").items()}

    def close(self) -> None:
        self._process.communicate()

    def _ask(self, command: str) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{command}\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer


def _take_the_last_turn() -> None:
    os.nice(_LOWEST)
    if hasattr(os, "SCHED_IDLE"):
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    with suppress(OSError):
        Path("/proc/self/autogroup").write_text(str(_LOWEST))


async def _serve(url: str, token: str) -> None:
    watching: list[tuple[Viewer, asyncio.Task[None]]] = []
    while line := await asyncio.to_thread(sys.stdin.readline):
        command, *rest = line.split()
        answer: dict[str, int] = {}
        if command == "look":
            heard = [asyncio.Event() for _ in range(int(rest[1]))]
            for each in heard:
                viewer = Viewer()
                watching.append((viewer, asyncio.create_task(watch(viewer, url, rest[0], token, each))))
            await asyncio.gather(*(each.wait() for each in heard))
        elif command == "leave":
            for _, task in watching:
                task.cancel()
            await asyncio.gather(*(task for _, task in watching), return_exceptions=True)
            answer = {
                "viewers": len(watching),
                "missed": sum(viewer.missed or not viewer.chunks for viewer, _ in watching),
            }
            watching = []
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _take_the_last_turn()
    asyncio.run(_serve(*sys.argv[1:]))
