"""Reading the collection of an .apkg: the older schema with JSON in `col`, and the newer one with tables of its own.

The file comes from anywhere: it is opened read-only, it may hold plain tables and indexes only, and time and sizes are
bounded. A view, a trigger, a virtual table or a generated column would compute what Anki only ever stores, such as
blobs of a gigabyte: a file with one is refused. Notes are read one by one.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote
from zoneinfo import ZoneInfo

from app.exchange.anki import wire
from app.exchange.anki.notes import Calendar, CardRow
from app.exchange.archive import refused
from app.exchange.limits import ANSWERS, HEAD_BYTES, MOST_CHARACTERS, NOTES, ROW_BYTES, ROWS
from app.study.api import day_number

STEPS_BETWEEN_CHECKS = 100_000
_READ = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION)
_LARGEST = 2**62
_LATEST = 4_102_444_800  # the year 2100, in seconds since 1970
_VIRTUAL = re.compile(r"\s*create\s+virtual\b", re.IGNORECASE)


@dataclass(frozen=True)
class NoteType:
    """A note type: its fields' names, its templates (front, back) by number, and whether it is a cloze."""

    name: str = ""
    is_cloze: bool = False
    fields: tuple[str, ...] = ()
    templates: Mapping[int, tuple[str, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class SourceNote:
    """A note as the collection holds it."""

    id: int
    guid: str
    type: int
    modified: int
    tags: tuple[str, ...]
    fields: tuple[str, ...]


@dataclass(frozen=True)
class SourceCard:
    """A card of a note: which template it shows, its deck, and its schedule."""

    note: int
    template: int
    deck: str
    row: CardRow
    answered_at: datetime | None = None


@dataclass(frozen=True)
class Collection:
    """Everything of a collection that matters here."""

    calendar: Calendar
    types: Mapping[int, NoteType]
    notes: Iterator[SourceNote]  # to be read once, while the collection is open
    note_count: int
    cards: tuple[SourceCard, ...]
    answers: int


@contextmanager
def open_collection(path: Path, zone: ZoneInfo, in_time: Callable[[], bool]) -> Iterator[Collection]:
    """The collection at `path`. Raises DomainError where it is damaged, too large, or takes longer than `in_time`."""
    try:
        with _opened(path, in_time) as connection:
            yield _checked(connection, zone)
    except sqlite3.Error as error:
        if not in_time():
            raise refused("Reading it takes too long.", "…", "a collection that can be read in a minute") from None
        raise refused(f"Its collection is damaged ({error}).", "…", "a file as Anki exports it") from None


def _checked(connection: sqlite3.Connection, zone: ZoneInfo) -> Collection:
    try:
        return _read(connection, zone)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError) as error:
        raise refused(
            f"Its collection is not as Anki writes it ({type(error).__name__}: {str(error)[:100]}).",
            "…",
            "a file as Anki exports it",
        ) from None


@contextmanager
def _opened(path: Path, in_time: Callable[[], bool]) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(f"file:{quote(str(path))}?mode=ro&immutable=1", uri=True)
    try:
        connection.text_factory = lambda data: data.decode(errors="replace")
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, HEAD_BYTES)
        connection.setlimit(sqlite3.SQLITE_LIMIT_SQL_LENGTH, 100_000)
        connection.setlimit(sqlite3.SQLITE_LIMIT_COLUMN, 100)
        for pragma in ("trusted_schema=OFF", "cell_size_check=ON", "mmap_size=0", "query_only=ON"):
            connection.execute(f"PRAGMA {pragma}")
        _refuse_what_computes(connection)
        connection.create_collation("unicase", lambda left, right: (left > right) - (left < right))
        connection.set_progress_handler(lambda: not in_time(), STEPS_BETWEEN_CHECKS)
        connection.set_authorizer(lambda action, *_: sqlite3.SQLITE_OK if action in _READ else sqlite3.SQLITE_DENY)
        yield connection
    finally:
        connection.close()


def _refuse_what_computes(connection: sqlite3.Connection) -> None:
    """Anki's collections hold tables and indexes. Nothing is read yet when this is asked."""
    rows = connection.execute("SELECT type, name, sql FROM sqlite_master LIMIT ?", (ROWS,)).fetchall()
    for kind, name, sql in rows:
        what = str(kind)
        if kind == "table" and _VIRTUAL.match(str(sql or "")):
            what = "virtual table"
        if what not in ("table", "index"):
            raise refused(f"It holds a {what}, {str(name)[:60]!r}.", "…", "a file as Anki exports it: plain tables")
    for kind, name, _ in rows:
        if kind == "table":
            quoted = str(name).replace('"', '""')
            columns = connection.execute(f'PRAGMA table_xinfo("{quoted}")')  # no function: a table could take its name
            computed = next((column for _, column, *_, hidden in columns if hidden), None)
            if computed is not None:
                message = f"It holds a generated column, {str(name)[:60]}.{str(computed)[:60]}."
                raise refused(message, "…", "a file as Anki exports it: plain tables")


def _read(connection: sqlite3.Connection, zone: ZoneInfo) -> Collection:
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if not {"col", "notes", "cards"} <= tables:
        raise refused("It holds no collection of Anki's.", "…", "a file as Anki exports it")
    count = connection.execute("SELECT count(*) FROM (SELECT 1 FROM notes LIMIT ?)", (NOTES + 1,)).fetchone()[0]
    cards = connection.execute("SELECT count(*) FROM (SELECT 1 FROM cards LIMIT ?)", (2 * NOTES + 1,)).fetchone()[0]
    if count > NOTES or cards > 2 * NOTES:
        raise refused("It has too many notes.", "…", f"up to {NOTES:,} notes and {2 * NOTES:,} cards in one file")
    newer = "notetypes" in tables
    types, decks, conf = (_newer if newer else _older)(connection)
    created = connection.execute("SELECT crt FROM col").fetchone()[0]
    answered, answers = _answers(connection) if "revlog" in tables else ({}, 0)
    query = (
        "SELECT id, nid, ord, CASE odid WHEN 0 THEN did ELSE odid END, type, queue, "
        "CASE odid WHEN 0 THEN due ELSE odue END, ivl, factor, reps, lapses, left, "
        "CASE WHEN length(data) <= 5000 THEN data END FROM cards ORDER BY nid, ord"
    )
    cards_read = tuple(_card(row, decks, answered) for row in connection.execute(query))
    calendar = _calendar(_whole(created), conf, zone)
    return Collection(calendar, types, _notes(connection), count, cards_read, answers)


def _notes(connection: sqlite3.Connection) -> Iterator[SourceNote]:
    """Every note, one at a time, and no more text than all cards of a file may have."""
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, ROW_BYTES)
    read = 0
    for row in connection.execute("SELECT id, guid, mid, mod, tags, flds FROM notes"):
        read += sum(len(value) for value in row if isinstance(value, str | bytes))
        if read > 2 * MOST_CHARACTERS:  # HTML is longer than the text it becomes
            raise refused("It holds too much text.", "…", f"up to {2 * MOST_CHARACTERS:,} characters of HTML")
        yield _note(*row)


def _note(id_: object, guid: object, type_: object, modified: object, tags: object, fields: object) -> SourceNote:
    words = tuple(str(tags or "").split())
    return SourceNote(
        _whole(id_), str(guid or ""), _whole(type_), _whole(modified), words, tuple(str(fields or "").split("\x1f"))
    )


def _card(row: tuple[object, ...], decks: Mapping[int, str], answered: Mapping[int, datetime]) -> SourceCard:
    id_, note, template, deck, type_, queue, due, interval, factor, reps, lapses, left, data = row
    schedule = CardRow(
        _whole(type_),
        _whole(queue),
        _whole(due),
        _whole(interval),
        _whole(factor),
        _whole(reps),
        _whole(lapses),
        _whole(left),
        str(data or "{}"),
    )
    return SourceCard(_whole(note), _whole(template), decks.get(_whole(deck), ""), schedule, answered.get(_whole(id_)))


def _whole(value: object) -> int:
    """A whole number within 64 bits; anything else a column may hold is 0."""
    if isinstance(value, float):
        value = int(value) if -_LARGEST < value < _LARGEST else 0
    return value if isinstance(value, int) and -_LARGEST < value < _LARGEST else 0


def _answers(connection: sqlite3.Connection) -> tuple[dict[int, datetime], int]:
    """When each card was last answered, and how many answers there are."""
    found: dict[int, datetime] = {}
    total = 0
    query = (
        "SELECT cid, max(id), count(*) FROM (SELECT cid, id FROM revlog WHERE ease > 0 LIMIT ?) "
        "WHERE cid IN (SELECT id FROM cards) GROUP BY cid"
    )
    for card, at, count in connection.execute(query, (ANSWERS,)):
        total += _whole(count)
        if 0 < _whole(at) < 1e14:
            found[_whole(card)] = datetime.fromtimestamp(_whole(at) / 1000, UTC)
    return found, total


def _older(connection: sqlite3.Connection) -> tuple[dict[int, NoteType], dict[int, str], Mapping[str, Any]]:
    models, decks, conf = connection.execute("SELECT models, decks, conf FROM col").fetchone()
    types = {}
    for id_, model in json.loads(models).items():
        fields = sorted(model["flds"], key=lambda each: int(each["ord"]))
        types[int(id_)] = NoteType(
            str(model["name"]),
            model["type"] == 1,
            tuple(str(each["name"]) for each in fields),
            {int(each["ord"]): (str(each["qfmt"]), str(each["afmt"])) for each in model["tmpls"]},
        )
    names = {int(id_): str(deck["name"]) for id_, deck in json.loads(decks).items()}
    found = json.loads(conf or "{}")
    return types, names, found if isinstance(found, dict) else {}


def _newer(connection: sqlite3.Connection) -> tuple[dict[int, NoteType], dict[int, str], Mapping[str, Any]]:
    fields: dict[int, list[str]] = {}
    for type_, name in connection.execute("SELECT ntid, name FROM fields ORDER BY ntid, ord LIMIT ?", (ROWS,)):
        fields.setdefault(_whole(type_), []).append(str(name))
    templates: dict[int, dict[int, tuple[str, str]]] = {}
    for type_, number, config in connection.execute("SELECT ntid, ord, config FROM templates LIMIT ?", (ROWS,)):
        sides = (wire.text_field(bytes(config), 1), wire.text_field(bytes(config), 2))
        templates.setdefault(_whole(type_), {})[_whole(number)] = sides
    types = {
        _whole(id_): NoteType(
            str(name), wire.number_field(bytes(config), 1) == 1, tuple(fields.get(id_, ())), templates.get(id_, {})
        )
        for id_, name, config in connection.execute("SELECT id, name, config FROM notetypes LIMIT ?", (ROWS,))
    }
    decks = {
        _whole(id_): str(name).replace("\x1f", "::")
        for id_, name in connection.execute("SELECT id, name FROM decks LIMIT ?", (ROWS,))
    }
    conf = {
        str(key): json.loads(value)
        for key, value in connection.execute("SELECT KEY, val FROM config WHERE KEY IN ('creationOffset', 'rollover')")
    }
    return types, decks, conf


def _calendar(created: int, conf: Mapping[str, object], zone: ZoneInfo) -> Calendar:
    """Day 0 is the date the collection was made on, as its own clock said."""
    if not 0 <= created < _LATEST:  # a hundred years around it are counted with, and must be dates
        raise ValueError(f"col.crt is {created}, not a time between 1970 and 2100 in seconds")
    at = datetime.fromtimestamp(created, UTC)
    west = conf.get("creationOffset")
    if isinstance(west, int) and abs(west) <= 24 * 60:
        rollover = conf.get("rollover", 4)
        hours = rollover if isinstance(rollover, int) and 0 <= rollover < 24 else 4
        return Calendar((at - timedelta(minutes=west, hours=hours)).toordinal(), zone)
    return Calendar(day_number(at, zone), zone)
