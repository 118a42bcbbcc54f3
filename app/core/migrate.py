"""Bringing a database to this release's schema: backed up before a change, refused when it is newer than we are."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util.exc import CommandError
from sqlalchemy import Connection

from app.core.db import Database
from app.core.errors import DomainError
from app.core.settings import ROOT


class DatabaseTooNew(DomainError):
    """The database was written by a newer release."""

    code = "database-too-new"


def alembic_config() -> Config:
    """Where the migrations are."""
    config = Config(toml_file=ROOT / "pyproject.toml")
    config.set_main_option("script_location", str(ROOT / "migrations"))
    return config


def migrate(database: Database, now: datetime, backups: Path | None = None) -> str | None:
    """Upgrade to the newest schema. Returns what was done, or None when nothing was.

    A SQLite file is copied to `backups` before its schema changes. Raises DatabaseTooNew without touching anything.
    """
    current, head = refuse_newer(database)
    if current == head:
        return None
    copied = back_up(database, now, backups) if current is not None and backups else None
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


def refuse_newer(database: Database) -> tuple[str | None, str | None]:
    """The database's schema and this release's. Raises DatabaseTooNew where the first is none this release knows."""
    with database.engine.connect() as connection:
        current = MigrationContext.configure(connection).get_current_revision()
    if current is None:
        return None, ScriptDirectory.from_config(alembic_config()).get_current_head()
    return current, refuse_unknown(current)


def refuse_unknown(schema: str) -> str | None:
    """This release's schema. Raises DatabaseTooNew where `schema` is none that it knows."""
    scripts = ScriptDirectory.from_config(alembic_config())
    head = scripts.get_current_head()
    try:
        scripts.get_revision(schema)
    except CommandError:
        raise DatabaseTooNew(
            f"The database is at schema {schema}, which this release (schema {head}) does not know: it was "
            "written by a newer one. Start that release, or point RANKZERO_DATA or RANKZERO_DATABASE_URL elsewhere."
        ) from None
    return head


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
