"""Reading what ranks left in a run's folder, as what it is: files that anybody's program wrote.

A name there may lead elsewhere (a link), never end (a pipe, a device), or be a file without end. No link is followed,
only regular files are opened, and no more is read at a time, of a line or of a file than is said here.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import BinaryIO

LONGEST_LINE_BYTES = 64 * 1024
READ_BYTES = 1024 * 1024  # of a file at a time
MOST_FILE_BYTES = 64 * 1024 * 1024  # of a rank's events; what it writes beyond that is left unread
LAST_BYTES = 256 * 1024  # of a log, for its last lines
LONGEST_SHOWN = 2_000  # characters of a line
_CUT = " … [cut: the line is longer]"
_MOST_FOLDERS = 100  # of a kind that are looked into


def open_regular(folder: Path, name: Path) -> BinaryIO:
    """The regular file `name` (relative) below `folder`. Raises OSError for anything else, links on the way included.

    Every step goes through the folder before it: nothing can be put in the way after it was looked at.
    """
    *parents, last = name.parts
    at = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for parent in parents:
            below = os.open(parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
            os.close(at)
            at = below
        # non-blocking: opening a pipe would wait for somebody to write to it
        found = os.open(last, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=at)
    finally:
        os.close(at)
    if not stat.S_ISREG(os.fstat(found).st_mode):
        os.close(found)
        raise OSError(f"{name} is no regular file")
    return os.fdopen(found, "rb")


class GrowingLines:
    """Whole lines of a file that grows, a bounded part of it at a time. An unfinished last line waits for its end; one
    that is too long, and all beyond what a file may have, is left out and counted."""

    def __init__(self, folder: Path, name: Path) -> None:
        self._folder, self._name = folder, name
        self._offset = 0
        self._rest = b""
        self._is_skipping = False  # in the middle of a line that is too long
        self.too_long = 0
        self.is_cut = False  # the file is larger than what is read of one
        self.is_behind = True  # there may be more to read at once

    def read(self) -> list[bytes]:
        """Lines that were finished since the last call, as far as one call reads."""
        data = b"" if self.is_cut else self._next_bytes()
        self._offset += len(data)
        self.is_behind = len(data) == READ_BYTES
        if self._offset >= MOST_FILE_BYTES:
            self.is_cut, self.is_behind = True, False
        *lines, self._rest = (self._rest + data).split(b"\n")
        if self._is_skipping and lines:
            lines, self._is_skipping = lines[1:], False
        if self._is_skipping or len(self._rest) > LONGEST_LINE_BYTES:
            self.too_long += not self._is_skipping
            self._rest, self._is_skipping = b"", True
        fine = [line for line in lines if len(line) <= LONGEST_LINE_BYTES]
        self.too_long += len(lines) - len(fine)
        return fine

    def _next_bytes(self) -> bytes:
        try:
            with open_regular(self._folder, self._name) as file:
                file.seek(self._offset)
                return file.read(min(READ_BYTES, MOST_FILE_BYTES - self._offset))
        except OSError:  # not there yet, or nothing that is read here
            return b""


def last_lines(folder: Path, name: Path, count: int) -> list[str]:
    """The last `count` lines of a file below `folder`, none of what is no regular file; what is cut off says so."""
    try:
        with open_regular(folder, name) as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - LAST_BYTES))
            data = file.read(LAST_BYTES)
    except OSError:
        return []
    lines = data.decode(errors="replace").replace("\0", "\ufffd").splitlines()
    if size > len(data) and len(lines) > 1:
        del lines[0]  # of which only the end was read
    return [shown(line) for line in lines[-count:]]


def shown(line: str, longest: int = LONGEST_SHOWN) -> str:
    """`line`, cut where it is longer than anybody reads, and saying so."""
    return line if len(line) <= longest else f"{line[: longest - len(_CUT)]}{_CUT}"


def matching(folder: Path, pattern: str) -> list[Path]:
    """Files below `folder` by a pattern, relative to it, in order; of very many, some."""
    with suppress(OSError):
        return sorted(path.relative_to(folder) for path in islice(folder.glob(pattern), _MOST_FOLDERS))
    return []
