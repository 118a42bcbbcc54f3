"""A place for files that are kept: a folder, or what else fsspec reaches, such as a bucket of S3-compatible storage.

Addresses and keys of such a store are its client's own settings (for S3 the `AWS_…` variables): none is ours.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import IO

from fsspec.core import url_to_fs
from fsspec.registry import known_implementations
from fsspec.utils import get_protocol

PIECE_BYTES = 1 << 20
_FOLDERS = ("file", "local")


def check_place(place: str) -> None:
    """Raises ValueError, with what would do, where nothing can be kept at `place`. Nothing is asked for over a network,
    and no client is loaded."""
    protocol = get_protocol(place)
    if protocol in _FOLDERS:
        if not place.removeprefix("file://").startswith("/"):
            raise ValueError(
                f"{place!r} is no place; accepted are a folder from the root, or such as s3://bucket/folder"
            )
        return
    known = known_implementations.get(protocol)
    if known is None:
        raise ValueError(f"{protocol}:// is nothing that fsspec knows; accepted are a folder, or such as s3://bucket")
    client = str(known["class"]).partition(".")[0]
    if find_spec(client) is None:
        raise ValueError(f"{protocol}:// needs the package {client}, which is not installed here")


class Store:
    """Files by name at one place. What goes wrong is raised as its client raises it, mostly an OSError."""

    def __init__(self, place: str) -> None:
        self._files, self._root = url_to_fs(place)
        known_as = self._files.protocol
        self._has_folders = bool(set(_FOLDERS) & set((known_as,) if isinstance(known_as, str) else known_as))

    @contextmanager
    def writing(self, name: str) -> Iterator[IO[bytes]]:
        """A file to write from beginning to end. In a store that knows no folders it is there when it is whole."""
        path = self._path(name)
        if self._has_folders:  # elsewhere there are none to be made
            self._files.makedirs(posixpath.dirname(path), exist_ok=True)
        with self._files.open(path, "wb") as file:
            yield file

    def write(self, name: str, pieces: Iterable[bytes]) -> None:
        with self.writing(name) as file:
            for piece in pieces:
                file.write(piece)

    def size(self, name: str) -> int:
        return int(self._files.size(self._path(name)))

    def read(self, name: str) -> Iterator[bytes]:
        """Piece by piece. Raises FileNotFoundError before the first where there is none."""
        file = self._files.open(self._path(name), "rb")
        return _pieces(file)

    def remove(self, folder: str) -> None:
        """What is in a folder, if anything is. Raises NotADirectoryError where the place itself is gone, as one is that
        is not mounted: other stores say so themselves."""
        if self._has_folders and not self._files.isdir(self._root):
            raise NotADirectoryError(self._root)
        if self._files.exists(path := self._path(folder)):
            self._files.rm(path, recursive=True)

    def _path(self, name: str) -> str:
        return f"{self._root.rstrip('/')}/{name}"


def _pieces(file: IO[bytes]) -> Iterator[bytes]:
    with file:
        while piece := file.read(PIECE_BYTES):
            yield piece
