"""What was made of the content, kept beside our compiled modules: reading and rendering it is two thirds of a start.

It is read as code is, and trusted as the modules beside it are: kept with them, never with the content, which may be a
stranger's.
"""

from __future__ import annotations

import gc
import os
import pickle
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

_DIGEST_BYTES = sha256().digest_size


def kept(folder: Path, made_of: Sequence[Path], make: Callable[[], T], is_right: Callable[[T], bool]) -> T:
    """What `make` makes: read from `folder` where it was kept, or made now, and then kept where it `is_right`. It holds
    for the files below `made_of`, content and code alike, this Python and these releases of what is installed."""
    path = folder / f"content.{_digest(made_of)}"
    whole = _read(path)
    if whole is not None:
        with _without_collector():
            found: T = pickle.loads(whole)  # noqa: S301 - ours, as the compiled modules beside it
        return found
    found = make()
    if is_right(found):
        _write(path, found)
    return found


@contextmanager
def _without_collector() -> Iterator[None]:
    """Python's collector would look again and again through what is being made, three times as long as making it, and
    find nothing to collect."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _read(path: Path) -> bytes | None:
    """What `_write` wrote, if it is there and whole: what a damaged pickle does is anybody's guess."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    digest, whole = data[:_DIGEST_BYTES], data[_DIGEST_BYTES:]
    return whole if sha256(whole).digest() == digest else None


def _write(path: Path, made: object) -> None:
    whole = pickle.dumps(made, pickle.HIGHEST_PROTOCOL)
    keep(path, sha256(whole).digest() + whole)


def keep(path: Path, data: bytes) -> None:
    """Put `data` at `path`, whole or not at all, in place of files of the same stem. A folder that cannot be written
    keeps nothing."""
    partial = path.with_name(f"{path.name}.{os.getpid()}")
    with suppress(OSError):
        path.parent.mkdir(exist_ok=True)
        for old in path.parent.glob(f"{path.stem}.*"):
            old.unlink()
        partial.write_bytes(data)
        partial.replace(path)


def _digest(made_of: Sequence[Path]) -> str:
    digest = sha256(sys.version.encode())
    for installed in sorted(name for each in sys.path for name in _distributions(Path(each))):
        digest.update(installed.encode())
    for folder in made_of:
        for path in sorted(_files(folder)):
            data = path.read_bytes()
            digest.update(f"{path.relative_to(folder)} {len(data)} ".encode())
            digest.update(data)
    return digest.hexdigest()[:16]


def _distributions(folder: Path) -> Iterator[str]:
    """What is installed there, each by a name that has its release."""
    with suppress(OSError):
        yield from (name for name in os.listdir(folder) if name.endswith(".dist-info"))


def _files(folder: Path) -> Iterator[Path]:
    for place, folders, names in os.walk(folder):
        folders[:] = [each for each in folders if each not in ("__pycache__", "static", "templates")]
        yield from (Path(place, name) for name in names)
