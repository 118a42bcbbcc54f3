"""Reading a zip file that somebody else made: nothing is unpacked by its name, and no more than asked for."""

from __future__ import annotations

import struct
import sys
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, BinaryIO

from app.core.errors import DomainError, Violation
from app.exchange.limits import DIRECTORY_BYTES

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

CHUNK = 1 << 20
LARGEST_WINDOW_LOG = 27  # 128 MB of memory, the most zstd's own command takes without being asked to

_END = struct.Struct("<4s4H2LH")
_DAMAGED = (
    zipfile.BadZipFile,
    zlib.error,
    zstd.ZstdError,
    EOFError,
    OSError,
    RuntimeError,
    NotImplementedError,
    ValueError,
)


def refused(message: str, value: object, accepted: str) -> DomainError:
    """The error of a file that is not imported at all."""
    return DomainError("The file was not imported.", [Violation("file", value, message, accepted)])


@contextmanager
def open_archive(file: BinaryIO, accepted: str) -> Iterator[zipfile.ZipFile]:
    """The zip file in `file`. Raises DomainError for what is none, or whose list of files alone is too long."""
    try:
        _check_directory(file)
        archive = zipfile.ZipFile(file)
    except _DAMAGED as error:
        raise refused(f"It is not a zip file that can be read ({error}).", "…", accepted) from None
    with archive:
        yield archive


def _check_directory(file: BinaryIO) -> None:
    """The list of files is read at once: it must be short. Its length stands in the last bytes."""
    size = file.seek(0, 2)
    file.seek(max(0, size - 65_557))
    tail = file.read(65_557)
    at = tail.rfind(b"PK\x05\x06")
    if at < 0 or at + _END.size > len(tail):
        raise zipfile.BadZipFile("the end of the file is missing")
    directory_bytes = _END.unpack_from(tail, at)[5]
    if directory_bytes > DIRECTORY_BYTES:
        raise zipfile.BadZipFile("it lists too many files")
    file.seek(0)


def read_member(archive: zipfile.ZipFile, name: str, limit: int) -> bytes:
    """A member's bytes. Raises DomainError where there are more than `limit` or they are damaged."""
    try:
        with archive.open(name) as member:
            data = member.read(limit + 1)
    except _DAMAGED as error:
        raise refused(f"{name[:80]} in it is damaged ({error}).", "…", "a complete file") from None
    if len(data) > limit:
        raise refused(f"{name[:80]} in it is too large.", "…", f"up to {limit:,} bytes unpacked")
    return data


def unpack_member(archive: zipfile.ZipFile, name: str, target: Path, limit: int, *, compressed: bool = False) -> None:
    """Write a member to `target`, unpacking zstd where it is `compressed`, and stop at `limit` bytes."""
    try:
        with archive.open(name) as member, target.open("wb") as out:
            for chunk in _unpacked(member) if compressed else iter(lambda: member.read(CHUNK), b""):
                if out.tell() + len(chunk) > limit:
                    raise refused(f"{name[:80]} in it is too large.", "…", f"up to {limit:,} bytes unpacked")
                out.write(chunk)
    except _DAMAGED as error:
        raise refused(f"{name[:80]} in it is damaged ({error}).", "…", "a complete file") from None


def _unpacked(member: IO[bytes]) -> Iterator[bytes]:
    """A zstd stream in pieces of at most a megabyte, however much it unpacks to."""
    decompressor = zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: LARGEST_WINDOW_LOG})
    while not decompressor.eof:
        data = member.read(CHUNK) if decompressor.needs_input else b""
        if decompressor.needs_input and not data:
            raise EOFError("it ends too early")
        yield decompressor.decompress(data, CHUNK)
