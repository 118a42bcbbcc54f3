"""What the processes of one test session make once and share: the first that asks makes it, the others wait for it."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path


def made_once(folder: Path, key: str, make: Callable[[Path], None]) -> Path:
    """The folder that `make` filled for `key`, whichever process did it. What was left half-made is made again."""
    place = folder / "shared" / hashlib.sha256(key.encode()).hexdigest()[:16]
    place.parent.mkdir(exist_ok=True)
    with place.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not place.exists():
            unfinished = place.with_suffix(".unfinished")
            shutil.rmtree(unfinished, ignore_errors=True)
            unfinished.mkdir()
            make(unfinished)
            unfinished.rename(place)
    return place
