"""Room on the disk that an install writes to, and what a full one looks like from here."""

from __future__ import annotations

import errno
import shutil
from pathlib import Path

FULL = (errno.ENOSPC, errno.EDQUOT)
# As SQLite and PostgreSQL put it, in lower case.
_PHRASES = ("database or disk is full", "no space left on device", "disk quota exceeded", "could not extend file")


def is_disk_full(error: BaseException | None) -> bool:
    """Whether `error`, or what led to it, is that a disk has no room."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in FULL:
            return True
        if any(phrase in str(error).lower() for phrase in _PHRASES):
            return True
        error = getattr(error, "orig", None) or error.__cause__
    return False


def free_bytes(folder: Path) -> int:
    """Room for files in `folder`, or where it will be made."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return shutil.disk_usage(folder).free
