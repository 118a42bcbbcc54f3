"""Writing an .apkg: a SQLite collection of schema 11 in a zip file, with stable GUIDs and ids."""

from __future__ import annotations

import sqlite3
import tempfile
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import astuple
from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

from app.exchange.anki import schema
from app.exchange.anki.notes import AnkiNote, to_row
from app.study.api import GivenAnswer, day_number, day_start

ZIP_DATE = (2026, 1, 1, 0, 0, 0)
SEPARATOR = "\x1f"
LONGEST_ANSWER_MILLISECONDS = 60_000


def write_package(
    path: Path, notes: Sequence[AnkiNote], answers: Iterable[tuple[str, GivenAnswer]], now: datetime, zone: ZoneInfo
) -> None:
    """Write `notes` to `path`, and the `answers` given to them, each with the GUID of its note."""
    with tempfile.TemporaryDirectory() as folder:
        collection = Path(folder) / "collection.anki2"
        _write_collection(collection, notes, answers, now, zone)
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            entry = zipfile.ZipInfo("collection.anki2", ZIP_DATE)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            archive.writestr(entry, collection.read_bytes())
            archive.writestr(zipfile.ZipInfo("media", ZIP_DATE), "{}")


def _write_collection(
    path: Path, notes: Sequence[AnkiNote], answers: Iterable[tuple[str, GivenAnswer]], now: datetime, zone: ZoneInfo
) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.executescript("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;" + schema.SCHEMA)
        connection.execute("BEGIN")
        first_day = _first_day(notes, now, zone)
        decks = schema.stable_ids({note.deck for note in notes})
        _write_settings(connection, decks, first_day, now, zone)
        ids = schema.stable_ids(note.guid for note in notes)
        for position, note in enumerate(notes, 1):
            _write_note(connection, note, ids[note.guid], decks[note.deck], position, first_day, zone)
        _write_answers(connection, answers, ids, zone)
        connection.execute("COMMIT")
    finally:
        connection.close()


def _first_day(notes: Iterable[AnkiNote], now: datetime, zone: ZoneInfo) -> int:
    """The collection's day 0: no due date lies before it."""
    due = [note.remembered.due_at for note in notes if note.remembered and note.remembered.due_at]
    return min(day_number(at, zone) for at in [*due, now]) - 1


def _write_settings(
    connection: sqlite3.Connection, decks: dict[str, int], first_day: int, now: datetime, zone: ZoneInfo
) -> None:
    created = day_start(first_day, zone)
    west = -int((created.astimezone(zone).utcoffset() or timedelta()).total_seconds() // 60)
    seconds = int(now.timestamp())
    connection.execute(
        "INSERT INTO col VALUES (1, ?, ?, ?, 11, 0, 0, 0, ?, ?, ?, ?, '{}')",
        (
            int(created.timestamp()),
            seconds * 1000,
            seconds * 1000,
            schema.configuration(west),
            schema.note_types(seconds),
            schema.decks(decks, seconds),
            schema.DECK_OPTIONS,
        ),
    )


def _write_note(
    connection: sqlite3.Connection, note: AnkiNote, id_: int, deck: int, position: int, first_day: int, zone: ZoneInfo
) -> None:
    modified = int(note.modified_at.timestamp())
    tags = f" {' '.join(note.tags)} " if note.tags else ""
    connection.execute(
        "INSERT INTO notes VALUES (?, ?, ?, ?, -1, ?, ?, ?, ?, 0, '')",
        (
            id_,
            note.guid,
            schema.CLOZE if note.is_cloze else schema.BASIC,
            modified,
            tags,
            SEPARATOR.join(field.replace(SEPARATOR, " ") for field in note.fields),
            note.fields[0],
            schema.checksum(note.fields[0]),
        ),
    )
    row = to_row(note.remembered, position, first_day, zone)
    connection.execute(
        "INSERT INTO cards VALUES (?, ?, ?, 0, ?, -1, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0, 0, ?)",
        (id_, id_, deck, modified, *astuple(row)),
    )


def _write_answers(
    connection: sqlite3.Connection, answers: Iterable[tuple[str, GivenAnswer]], ids: dict[str, int], zone: ZoneInfo
) -> None:
    taken, intervals = 0, dict[str, int]()
    for guid, answer in answers:
        taken = max(taken + 1, int(answer.reviewed_at.timestamp() * 1000))  # the id is the time, and is unique
        interval = _interval(answer, zone)
        kind = 0 if answer.state_before in (None, 1) else 2 if answer.state_before == 3 else 1
        connection.execute(
            "INSERT INTO revlog VALUES (?, ?, -1, ?, ?, ?, ?, ?, ?)",
            (
                taken,
                ids[guid],
                answer.rating,
                interval,
                intervals.get(guid, 0),
                round((answer.difficulty - 1) / 9 * 1000 + 100),
                min(answer.elapsed_milliseconds, LONGEST_ANSWER_MILLISECONDS),
                kind,
            ),
        )
        intervals[guid] = interval


def _interval(answer: GivenAnswer, zone: ZoneInfo) -> int:
    """Days where days count, seconds below zero where minutes do."""
    if answer.state_after == 2:
        return max(1, day_number(answer.due_at, zone) - day_number(answer.reviewed_at, zone))
    return -max(1, int((answer.due_at - answer.reviewed_at).total_seconds()))
