"""All that an install knows, as one file, and back: into this database or another one, of either kind.

The file is a zip of rows, not a copy of a database: `manifest.json` says of which schema they are, how many there are
and what each part's digest is; `tables/<name>.jsonl` has a table's rows, the oldest first. A value that is NULL is left
out of its row. So what SQLite held can be put into PostgreSQL, and a file of an older release is brought to this one's
schema by the same migrations as a database would be. Working files (folders of runs, logs, Redis) are not in it.
"""

from __future__ import annotations

import base64
import hashlib
import json
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from alembic import command
from sqlalchemy import JSON, Connection, Date, DateTime, LargeBinary, MetaData, Table, delete, func, select, text
from sqlalchemy.exc import SQLAlchemyError

from app.core.db import Database
from app.core.errors import DomainError
from app.core.migrate import VERSION_TABLE, alembic_config, changing_schema, check_schema, refuse_unknown
from app.models import METADATA
from app.units import factor_of

FORMAT = 1
MANIFEST = "manifest.json"
_BATCH = 500
_LONGEST_LINE_BYTES = int(64 * factor_of("MiB"))
# What is true of processes that run now, and of nobody who is restored.
_OF_NOW = frozenset({"worker_presence", "served_release", "gpu_lease"})


class BadBackup(DomainError):
    """The file is no backup, or not as it was written."""

    code = "bad-backup"


@dataclass(frozen=True)
class Part:
    """A table in the file."""

    rows: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """What a backup says of itself."""

    format: int
    release: str
    schema: str
    made_at: str
    tables: Mapping[str, Part]

    @property
    def rows(self) -> int:
        return sum(part.rows for part in self.tables.values())


def back_up_install(database: Database, out: Path, release: str, now: datetime) -> Manifest:
    """Write everything into the new file `out`, as it is at one moment. Raises DomainError."""
    check_schema(database)
    partial = out.with_name(f"{out.name}.partial")
    if out.exists():
        raise DomainError(f"{out} is there already. Name a file that is not.")
    try:
        with (
            database.engine.connect() as connection,
            zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as file,
        ):
            if connection.dialect.name != "sqlite":  # there a transaction sees one moment anyway
                connection.execute(text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"))
            schema = connection.scalar(text(f"SELECT version_num FROM {VERSION_TABLE}"))  # noqa: S608 - our own name
            tables = {table.name: _write_table(connection, table, file) for table in _tables()}
            manifest = Manifest(FORMAT, release, str(schema), now.astimezone(UTC).isoformat(), tables)
            file.writestr(MANIFEST, json.dumps(asdict(manifest), indent=2))
        partial.rename(out)
    except OSError as error:
        raise DomainError(f"{out} cannot be written: {error.strerror}.") from None
    finally:
        partial.unlink(missing_ok=True)
    return manifest


def restore_install(database: Database, source: Path) -> Manifest:
    """Put what is in a backup in place of all that `database` holds, in one transaction: all of it or nothing. The file
    is checked before anything is touched. Raises DomainError."""
    with _open(source) as file:
        manifest = _checked_manifest(file, source)
        refuse_unknown(manifest.schema)
        for name, part in manifest.tables.items():
            _check_part(file, name, part)
        try:
            with changing_schema(database) as connection:
                _empty(connection)
                _upgrade(connection, manifest.schema)
                _fill(connection, file, manifest)
                _upgrade(connection, "head")
                _continue_numbering(connection)
        except BadBackup:
            raise
        except (SQLAlchemyError, DomainError) as error:
            why = str(getattr(error, "orig", error)).splitlines()[0]
            raise BadBackup(f"{source} was not restored, nothing has changed: {why}.") from error
    return manifest


def reset_install(database: Database) -> None:
    """An empty install, as after the first start."""
    with changing_schema(database) as connection:
        _empty(connection)
        _upgrade(connection, "head")


def holds_anything(database: Database) -> bool:
    """Whether there is more in it than a new install has."""
    with database.engine.connect() as connection:
        found = MetaData()
        found.reflect(connection)
        return any(
            (connection.scalar(select(func.count()).select_from(table)) or 0) > (1 if name == "learner" else 0)
            for name, table in found.tables.items()
            if name != VERSION_TABLE and name not in _OF_NOW
        )


def _tables() -> list[Table]:
    return [table for table in METADATA.sorted_tables if table.name not in _OF_NOW]


def _write_table(connection: Connection, table: Table, file: zipfile.ZipFile) -> Part:
    digest, rows = hashlib.sha256(), 0
    # JSON's own null is told from no value at all, which reads the same
    absent = [column.is_(None).label(f"no {column.name}") for column in table.columns if isinstance(column.type, JSON)]
    ordered = select(*table.columns, *absent).order_by(*table.primary_key.columns)
    with file.open(_member(table.name), "w", force_zip64=True) as out:
        for row in connection.execution_options(yield_per=_BATCH).execute(ordered).mappings():
            values = {
                column.name: _to_json(row[column.name])
                for column in table.columns
                if row[column.name] is not None or not row.get(f"no {column.name}", True)
            }
            line = json.dumps(values, separators=(",", ":")).encode() + b"\n"
            digest.update(line)
            out.write(line)
            rows += 1
    return Part(rows, digest.hexdigest())


def _to_json(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value


def _member(name: str) -> str:
    return f"tables/{name}.jsonl"


def _open(source: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(source)
    except OSError as error:
        raise BadBackup(f"{source} cannot be read: {error.strerror}.") from None
    except zipfile.BadZipFile:
        raise BadBackup(f"{source} is no backup of ours: not a zip file, or one that was cut off.") from None


def _checked_manifest(file: zipfile.ZipFile, source: Path) -> Manifest:
    try:
        said = json.loads(file.read(MANIFEST))
        tables = {name: Part(**part) for name, part in said.pop("tables").items()}
        manifest = Manifest(tables=tables, **said)
    except (KeyError, ValueError, TypeError, AttributeError, zipfile.BadZipFile):
        raise BadBackup(f"{source} is no backup of ours: it has no {MANIFEST} that can be read.") from None
    if manifest.format != FORMAT:
        raise BadBackup(f"{source} has format {manifest.format}; this release reads format {FORMAT}.")
    return manifest


def _check_part(file: zipfile.ZipFile, name: str, part: Part) -> None:
    """Every byte of it, before anything is touched."""
    digest, rows = hashlib.sha256(), 0
    try:
        with file.open(_member(name)) as lines:
            while line := lines.readline(_LONGEST_LINE_BYTES):
                digest.update(line)
                rows += 1
    except (KeyError, OSError, zipfile.BadZipFile, ValueError) as error:
        raise BadBackup(f"{_member(name)} of the backup cannot be read: {error}. Nothing was restored.") from None
    if (rows, digest.hexdigest()) != (part.rows, part.sha256):
        raise BadBackup(f"{_member(name)} is not as it was written: the file was damaged. Nothing was restored.")


def _empty(connection: Connection) -> None:
    found = MetaData()
    found.reflect(connection)
    found.drop_all(connection)


def _upgrade(connection: Connection, revision: str) -> None:
    config = alembic_config()
    config.attributes["connection"] = connection
    command.upgrade(config, revision)


def _fill(connection: Connection, file: zipfile.ZipFile, manifest: Manifest) -> None:
    """The rows, into tables as they were in the backup's schema."""
    found = MetaData()
    found.reflect(connection)
    for table in reversed(found.sorted_tables):
        if table.name != VERSION_TABLE:
            connection.execute(delete(table))  # what migrations put there
    for table in found.sorted_tables:
        if table.name not in manifest.tables:
            continue
        with file.open(_member(table.name)) as lines:
            for batch in _batches(_rows(table, lines)):
                connection.execute(table.insert(), batch)


def _rows(table: Table, lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(lines, 1):
        try:
            values = json.loads(line)
            yield {name: _of_json(value, table.columns[name].type) for name, value in values.items()}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise BadBackup(f"{_member(table.name)}:{number} {error}: not a row of this table.") from None


def _of_json(value: Any, kind: Any) -> Any:
    if isinstance(kind, JSON) or value is None:
        return value
    if isinstance(kind, DateTime):
        return datetime.fromisoformat(value)
    if isinstance(kind, Date):
        return date.fromisoformat(value)
    return base64.b64decode(value) if isinstance(kind, LargeBinary) else value


def _batches(rows: Iterable[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Rows that have the same columns, together: what a row leaves out is NULL."""
    batch: list[dict[str, Any]] = []
    for row in rows:
        if batch and (len(batch) == _BATCH or row.keys() != batch[0].keys()):
            yield batch
            batch = []
        batch.append(row)
    if batch:
        yield batch


def _continue_numbering(connection: Connection) -> None:
    """PostgreSQL counts ids by sequences of their own, which rows that come with an id do not move."""
    if connection.dialect.name != "postgresql":
        return
    for table in METADATA.sorted_tables:
        column = table.autoincrement_column
        if column is None:
            continue
        sequence = connection.scalar(select(func.pg_get_serial_sequence(table.name, column.name)))
        newest = connection.scalar(select(func.max(column)))
        if sequence is not None:
            connection.execute(select(func.setval(sequence, newest or 1, newest is not None)))
