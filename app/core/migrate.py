"""Bringing a database to this release's schema: backed up before a change, refused when it is newer than we are.

Every process looks at its start whether the schema is this release's. Alembic, whose import is a good part of such a
start, is loaded only where a schema changes.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, inspect

from app.core.db import Database
from app.core.errors import DomainError
from app.core.settings import ROOT

if TYPE_CHECKING:
    from alembic.config import Config

VERSION_TABLE = "alembic_version"
_MIGRATIONS = ROOT / "migrations"
_REVISION = re.compile(r"^(down_)?revision = (.*)$", re.MULTILINE)


class DatabaseTooNew(DomainError):
    """The database was written by a newer release."""

    code = "database-too-new"


def alembic_config() -> Config:
    """Where the migrations are."""
    from alembic.config import Config  # noqa: PLC0415 - see above

    config = Config(toml_file=ROOT / "pyproject.toml")
    config.set_main_option("script_location", str(_MIGRATIONS))
    return config


def migrate(database: Database, now: datetime, backups: Path | None = None) -> str | None:
    """Upgrade to the newest schema. Returns what was done, or None when nothing was.

    A SQLite file is copied to `backups` before its schema changes. Raises DatabaseTooNew without touching anything.
    """
    current, head = refuse_newer(database)
    if current == head:
        return None
    copied = back_up(database, now, backups) if current is not None and backups else None
    from alembic import command  # noqa: PLC0415 - see above

    with changing_schema(database) as connection:
        config = alembic_config()
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
    done = f"schema {current or 'none'} → {head}"
    return f"{done}, backup in {copied}" if copied else done


class DatabaseNotMigrated(DomainError):
    """The database was written by an older release and nobody has brought it to this one's schema."""

    code = "database-not-migrated"


@contextmanager
def changing_schema(database: Database) -> Iterator[Connection]:
    """A transaction that may change tables. SQLite replaces a table to alter it: what refers to its rows is looked at
    once that is done, for dropping the old one would count as deleting them. Raises DomainError where something
    refers to nothing then."""
    is_sqlite = database.engine.dialect.name == "sqlite"
    with database.engine.execution_options(writes=True).connect() as connection:
        raw: Any = connection.connection.driver_connection
        if is_sqlite:
            raw.execute("PRAGMA foreign_keys=OFF")  # before the transaction: within one it does nothing
        try:
            with connection.begin():
                yield connection
                if is_sqlite and (lost := connection.exec_driver_sql("PRAGMA foreign_key_check").first()):
                    raise DomainError(f"A row of {lost[0]} refers to a row of {lost[2]} that is not there.")
        finally:
            if is_sqlite:
                raw.execute("PRAGMA foreign_keys=ON")


def check_schema(database: Database) -> None:
    """Raises DatabaseTooNew or DatabaseNotMigrated where the database has another schema than this release's."""
    current, head = refuse_newer(database)
    if current != head:
        raise DatabaseNotMigrated(
            f"The database is at schema {current or 'none'}, this release needs {head}. `rankzero migrate` brings it "
            "there, after a backup of a SQLite file."
        )


def refuse_newer(database: Database) -> tuple[str | None, str]:
    """The database's schema and this release's. Raises DatabaseTooNew where the first is none this release knows."""
    with database.engine.connect() as connection:
        current = _current(connection)
    return current, newest_schema() if current is None else refuse_unknown(current)


def _current(connection: Connection) -> str | None:
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    found = connection.exec_driver_sql(f"SELECT version_num FROM {VERSION_TABLE}").scalar()  # noqa: S608 - our own name
    return None if found is None else str(found)


def refuse_unknown(schema: str) -> str:
    """This release's schema. Raises DatabaseTooNew where `schema` is none that it knows."""
    newest = newest_schema()
    if schema not in known_schemas():
        raise DatabaseTooNew(
            f"The database is at schema {schema}, which this release (schema {newest}) does not know: it was "
            "written by a newer one. Start that release, or point RANKZERO_DATA or RANKZERO_DATABASE_URL elsewhere."
        )
    return newest


def newest_schema() -> str:
    """The migration that no other one follows."""
    schemas = known_schemas()
    (newest,) = set(schemas) - set(schemas.values())
    return newest


@cache
def known_schemas() -> Mapping[str, str]:
    """Every migration's name, and the one it follows (empty for the first), as their files say, without running
    them."""
    found = {}
    for path in sorted((_MIGRATIONS / "versions").glob("*.py")):
        said = {which: value.strip("\"'") for which, value in _REVISION.findall(path.read_text(encoding="utf-8"))}
        found[said[""]] = "" if said["down_"] == "None" else said["down_"]
    return found


def back_up(database: Database, now: datetime, folder: Path) -> Path | None:
    """Copy a SQLite file with SQLite's own online backup; other databases have their own tools."""
    name = database.engine.url.database
    if database.engine.dialect.name != "sqlite" or not name or not Path(name).exists():
        return None
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    target = folder / f"rankzero-{now:%Y%m%d-%H%M%S}.sqlite3"
    source, copy = sqlite3.connect(name), sqlite3.connect(target)
    try:
        source.backup(copy)
    finally:
        source.close()
        copy.close()
    return target
