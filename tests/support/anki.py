"""Anki itself, from its own package: what it makes of our files, and files as it writes them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anki.collection import (
    Collection,
    ExportAnkiPackageOptions,
    ImportAnkiPackageOptions,
    ImportAnkiPackageRequest,
)
from anki.import_export_pb2 import ImportAnkiPackageUpdateCondition as Update


@dataclass(frozen=True)
class Seen:
    """A card as Anki has it."""

    guid: str
    fields: tuple[str, ...]
    tags: tuple[str, ...]
    deck: str
    type: int
    queue: int
    due_in_days: int
    due: int
    ivl: int
    reps: int
    lapses: int
    data: dict[str, Any]


class Anki:
    """A collection of Anki's own."""

    def __init__(self, collection: Collection) -> None:
        self.collection = collection

    def take(self, path: Path, *, scheduling: bool = True) -> Any:
        """Import a package; Anki's own log of what became of each note."""
        options = ImportAnkiPackageOptions(
            with_scheduling=scheduling,
            with_deck_configs=False,
            merge_notetypes=False,
            update_notes=Update.IMPORT_ANKI_PACKAGE_UPDATE_CONDITION_IF_NEWER,
            update_notetypes=Update.IMPORT_ANKI_PACKAGE_UPDATE_CONDITION_IF_NEWER,
        )
        return self.collection.import_anki_package(
            ImportAnkiPackageRequest(package_path=str(path), options=options)
        ).log

    def give(self, path: Path, *, legacy: bool, scheduling: bool = True) -> Path:
        """Export everything."""
        options = ExportAnkiPackageOptions(
            with_scheduling=scheduling, with_deck_configs=False, with_media=True, legacy=legacy
        )
        self.collection.export_anki_package(out_path=str(path), options=options, limit=None)
        return path

    def add(self, kind: str, fields: dict[str, str], deck: str = "Default", tags: tuple[str, ...] = ()) -> Any:
        note = self.collection.new_note(self.collection.models.by_name(kind))
        for name, text in fields.items():
            note[name] = text
        note.tags = list(tags)
        self.collection.add_note(note, self.collection.decks.id(deck))
        return note

    def cards(self) -> dict[str, Seen]:
        """Every card by its note's GUID (and its number, where a note has several)."""
        today = self.collection.sched.today
        found = {}
        for card_id in self.collection.find_cards(""):
            card = self.collection.get_card(card_id)
            note = card.note()
            row = self.collection.db.first("SELECT data FROM cards WHERE id = ?", card_id)
            key = note.guid if card.ord == 0 else f"{note.guid}~{card.ord}"
            found[key] = Seen(
                note.guid,
                tuple(note.fields),
                tuple(note.tags),
                self.collection.decks.name(card.did),
                card.type,
                card.queue,
                card.due - today,
                card.due,
                card.ivl,
                card.reps,
                card.lapses,
                json.loads(row[0] or "{}"),
            )
        return found


@contextmanager
def real_anki(folder: Path) -> Iterator[Anki]:
    """A fresh collection in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    collection = Collection(str(folder / "collection.anki2"))
    try:
        yield Anki(collection)
    finally:
        collection.close()
