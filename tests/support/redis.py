"""A real Redis for tests, gone with them."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

from app.operate import redis_server


@contextlib.contextmanager
def running_redis(folder: Path) -> Iterator[str]:
    """The URL of a server of its own, on a socket in `folder`."""
    process = subprocess.Popen(
        redis_server.command(redis_server.find_server(), folder), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        redis_server.wait_until_it_answers(redis_server.url(folder))
        yield redis_server.url(folder)
    finally:
        process.terminate()
        process.wait(120)
