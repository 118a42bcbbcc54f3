"""Opening an .apkg: which collection is in it, and how it is packed."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO
from zoneinfo import ZoneInfo

from app.exchange.anki.collection import Collection, open_collection
from app.exchange.archive import open_archive, refused, unpack_member
from app.exchange.findings import InTime
from app.exchange.limits import COLLECTION_BYTES

# newest first: what an older name holds beside a newer one only says that Anki is too old
NAMES = (("collection.anki21b", True), ("collection.anki21", False), ("collection.anki2", False))
ACCEPTED = "an .apkg as Anki exports it"


@contextmanager
def open_package(file: BinaryIO, zone: ZoneInfo, in_time: InTime) -> Iterator[tuple[Collection, int]]:
    """The collection of an .apkg and how many media files lie beside it. Raises DomainError."""
    with open_archive(file, ACCEPTED) as archive:
        present = archive.namelist()
        found = next(((name, packed) for name, packed in NAMES if name in present), None)
        if found is None:
            raise refused("It is a zip file, but holds no collection of Anki's.", "…", ACCEPTED)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "collection"
            unpack_member(archive, found[0], path, COLLECTION_BYTES, compressed=found[1])
            media = sum(name.isdigit() for name in present)
            with open_collection(path, zone, in_time) as collection:
                yield collection, media
