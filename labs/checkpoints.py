"""Where a run's checkpoints lie in their folder, which of them are whole, and one as an archive. Torch-free.

What lies there ranks have written: a name may lead elsewhere or never end. So an archive has regular files alone, by
the names that checkpoints have, and no link is followed.
"""

from __future__ import annotations

import os
import re
import stat
import tarfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

_IS_WHOLE = ".metadata"  # written last
_FILE = re.compile(r"\.metadata|__\d{1,4}_\d{1,4}\.distcp")  # as torch.distributed.checkpoint calls them
MOST_FILES = 1_000
_PIECE_BYTES = 1 << 20
_OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OPEN_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a pipe would be waited for


def named_for_checkpoints(runs: Path, identity: str) -> Path:
    """Of a run's own, below the folder of all `runs`, whoever starts its ranks how often."""
    return runs / f"{identity}-checkpoints"


def place_of(folder: Path, step: int) -> Path:
    """Where the checkpoint after `step` is, or is to be."""
    return folder / f"step-{step}"


def whole_steps(folder: Path) -> list[int]:
    """The steps after which there is a checkpoint that can be read, in their order."""
    found = folder.glob(f"step-*/{_IS_WHOLE}")
    return sorted(int(path.parent.name.removeprefix("step-")) for path in found)


@dataclass(frozen=True)
class Archive:
    """A checkpoint as a tar, its files open: what is removed meanwhile is sent all the same. To be read once."""

    step: int
    files: tuple[tuple[str, int, BinaryIO], ...]  # name, bytes
    opened: ExitStack

    @property
    def size_bytes(self) -> int:
        """Of the whole tar: a header for the folder and each file, its content in blocks, and two blocks at the end."""
        contents = sum(tarfile.BLOCKSIZE + size + _padding(size) for _, size, _ in self.files)
        return tarfile.BLOCKSIZE + contents + 2 * tarfile.BLOCKSIZE

    def pieces(self) -> Iterator[bytes]:
        """The tar. Raises OSError where a file has become shorter."""
        with self.opened:
            yield _header(f"step-{self.step}", tarfile.DIRTYPE, 0o700)
            for name, size, file in self.files:
                yield _header(f"step-{self.step}/{name}", tarfile.REGTYPE, 0o600, size)
                left = size
                while left:
                    piece = file.read(min(left, _PIECE_BYTES))
                    if not piece:
                        raise OSError(f"{name} has become shorter while it was read.")
                    left -= len(piece)
                    yield piece
                yield bytes(_padding(size))
            yield bytes(2 * tarfile.BLOCKSIZE)


def open_newest(folder: Path) -> Archive | None:
    """The last whole checkpoint in `folder`; None where there is none, or what is there is no such thing."""
    with ExitStack() as stack:
        try:
            step = max(whole_steps(folder))
            above = stack.enter_context(open_folder(folder))
            at = stack.enter_context(open_folder(place_of(folder, step).name, above))
            names = sorted(filter(_FILE.fullmatch, os.listdir(at)))
            files = tuple((name, *open_file(name, at, stack)) for name in names[: MOST_FILES + 1])
        except (OSError, ValueError):
            return None
        if len(files) > MOST_FILES:
            return None
        return Archive(step, files, stack.pop_all())


@contextmanager
def open_folder(place: Path | str, above: int | None = None) -> Iterator[int]:
    """A folder's number, by which what is in it is opened. Raises OSError for anything else, a link included."""
    number = os.open(place, _OPEN_FOLDER, dir_fd=above)
    try:
        yield number
    finally:
        os.close(number)


def open_file(name: str, folder: int, stack: ExitStack) -> tuple[int, BinaryIO]:
    """Bytes and content of a regular file in `folder`, open as long as `stack` is. Raises OSError for anything else."""
    file = stack.enter_context(os.fdopen(os.open(name, _OPEN_FILE, dir_fd=folder), "rb"))
    about = os.fstat(file.fileno())
    if not stat.S_ISREG(about.st_mode):
        raise OSError(f"{name} is no regular file.")
    return about.st_size, file


def _header(name: str, kind: bytes, mode: int, size: int = 0) -> bytes:
    entry = tarfile.TarInfo(name)
    entry.type, entry.mode, entry.size = kind, mode, size
    return entry.tobuf(tarfile.GNU_FORMAT)


def _padding(size: int) -> int:
    return -size % tarfile.BLOCKSIZE
