"""Where snapshots of the CUDA allocator lie, one of each rank, and one opened to be sent. Torch-free.

Each is a pickle, made by a rank: it is handed on as it is, and never loaded here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from labs.checkpoints import open_file, open_folder

MOST_BYTES = 256 * 1024 * 1024  # of one
_FILE = re.compile(r"allocator-(\d{1,4})\.pickle")
_PIECE_BYTES = 1 << 20


def named_for_snapshots(runs: Path, identity: str) -> Path:
    """Of a run's own, below the folder of all `runs`, whoever starts its ranks how often."""
    return runs / f"{identity}-snapshots"


def file_of(rank: int) -> str:
    return f"allocator-{rank}.pickle"


@dataclass(frozen=True)
class Snapshot:
    """One rank's, its file open: what is removed meanwhile is sent all the same. To be read once."""

    size_bytes: int
    file: BinaryIO
    opened: ExitStack

    def pieces(self) -> Iterator[bytes]:
        """No more than was announced."""
        with self.opened:
            left = self.size_bytes
            while left and (piece := self.file.read(min(left, _PIECE_BYTES))):
                left -= len(piece)
                yield piece


def list_snapshots(folder: Path) -> Mapping[int, int]:
    """Bytes of each rank's snapshot in `folder`, by rank; empty where there is none."""
    try:
        with open_folder(folder) as at:
            ranks = sorted(int(found[1]) for name in os.listdir(at) if (found := _FILE.fullmatch(name)))
    except OSError:
        return {}
    sizes = {}
    for rank in ranks:
        if (snapshot := open_snapshot(folder, rank)) is not None:
            with snapshot.opened:
                sizes[rank] = snapshot.size_bytes
    return sizes


def open_snapshot(folder: Path, rank: int) -> Snapshot | None:
    """None where that rank left none, or what is there is no such file, or too large for one."""
    with ExitStack() as stack:
        try:
            at = stack.enter_context(open_folder(folder))
            size, file = open_file(file_of(rank), at, stack)
        except OSError:
            return None
        return Snapshot(size, file, stack.pop_all()) if size <= MOST_BYTES else None
