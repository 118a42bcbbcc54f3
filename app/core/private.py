"""Nobody else on this machine reads what an install writes: not its database, its logs, its runs or its sockets."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

UMASK = 0o077
# What an install has in its data folder. The folder may have been somebody's before: nothing else in it is touched.
OURS = ("rankzero.sqlite3*", "backups", "log", "redis", "runs", "bench", "lock", "running.json", "token")


def keep_to_ourselves() -> None:
    """From now on this process, and all it starts, make files and folders that only their owner may open."""
    os.umask(UMASK)


def close_to_others(folder: Path) -> int:
    """Make the data folder if it is not there, and close it and what an install has in it to others.

    Returns how many files and folders were open to others before. An install from before this was done is closed here.
    """
    is_install = not folder.exists() or any(True for _ in _ours(folder))
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = [path for ours in _ours(folder) for path in _below(ours)]
    # a folder that was there before us may be anything, such as /tmp: it is closed only where it is an install's own
    return sum(_close(path) for path in [*([folder] if is_install else []), *found])


def _ours(folder: Path) -> Iterator[Path]:
    for pattern in OURS:
        yield from folder.glob(pattern)


def _below(path: Path) -> Iterator[Path]:
    """`path` and, of a folder, all below it. Links are not followed."""
    yield path
    if path.is_dir() and not path.is_symlink():
        for parent, folders, files in os.walk(path):
            yield from (Path(parent) / name for name in (*folders, *files))


def _close(path: Path) -> bool:
    """Whether `path` was ours and open to others; it is not any more."""
    with suppress(OSError):  # gone in the meantime
        status = path.lstat()
        is_link, is_shared = stat.S_ISLNK(status.st_mode), bool(status.st_mode & stat.S_ISVTX)
        if status.st_uid == os.getuid() and status.st_mode & UMASK and not is_link and not is_shared:
            path.chmod(stat.S_IMODE(status.st_mode) & ~UMASK)
            return True
    return False
