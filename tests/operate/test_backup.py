"""Backups: what is written comes back, into either kind of database, all of it or nothing."""

from __future__ import annotations

import hashlib
import json
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, inspect, select, text

from app.core.db import Database, open_database
from app.core.errors import DomainError
from app.core.migrate import DatabaseTooNew
from app.core.models import LOCAL_LEARNER
from app.lab import service, work
from app.lab.models import Chunk, Run
from app.models import METADATA
from app.operate import backup
from app.operate.backup import BadBackup, back_up_install, holds_anything, reset_install, restore_install
from app.operate.install import Install
from tests.conftest import NOW
from tests.operate.test_commands import Command
from tests.operate.test_commands import command as rankzero
from tests.support import events

SPEC: dict[str, Any] = {"model": "gpt-mini", "training": {"steps": 10, "sequence": 32}, "parallel": {"data": 2}}
OLDER = "2026_11_22_attempts"
__all__ = ["rankzero"]


@pytest.fixture
def other(postgres: Database) -> Iterator[Database]:
    """An empty PostgreSQL database beside the session's, with which a restore may do as it likes."""
    name = f"{postgres.engine.url.database}_restored"
    with postgres.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
        found = open_database(postgres.engine.url.set(database=name).render_as_string(hide_password=False))
        yield found
        found.engine.dispose()
        connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))


def _fill(database: Database) -> int:
    """A run with events and with what is null in JSON and what is no value at all."""
    with database.write() as session:
        run = service.submit_run(session, LOCAL_LEARNER, SPEC, None, NOW)
        claim = work.claim_next(session, "w", lambda _: "CPU", NOW)
        assert claim is not None
        work.append_chunk(session, claim, [events.step(1)], NOW)
        service.submit_run(session, LOCAL_LEARNER, SPEC, {"model_state_bytes": {"value": "26 MB"}}, NOW)
        return run.id


def _rows(database: Database) -> dict[str, list[Any]]:
    """Everything, with whether a value is there at all."""
    with database.engine.connect() as connection:
        return {
            table.name: [
                tuple(row)
                for row in connection.execute(
                    select(*table.columns, *(c.is_(None) for c in table.columns)).order_by(*table.primary_key.columns)
                )
            ]
            for table in METADATA.sorted_tables
            if table.name not in backup._OF_NOW
        }


def test_what_sqlite_held_goes_on_in_postgresql(sqlite: Database, other: Database, tmp_path: Path) -> None:
    newest = _fill(sqlite) + 1
    made = back_up_install(sqlite, tmp_path / "all.zip", "0.1.0", NOW)
    assert made.tables["run"].rows == 2
    assert made.tables["run_chunk"].rows == 1
    assert "worker_presence" not in made.tables
    restore_install(other, tmp_path / "all.zip")
    assert _rows(other) == _rows(sqlite)
    with other.write() as session:
        assert service.submit_run(session, LOCAL_LEARNER, SPEC, None, NOW).id == newest + 1, "the numbering goes on"


def test_what_postgresql_held_goes_back(other: Database, sqlite: Database, tmp_path: Path) -> None:
    reset_install(other)
    _fill(other)
    back_up_install(other, tmp_path / "all.zip", "0.1.0", NOW)
    restore_install(sqlite, tmp_path / "all.zip")
    assert _rows(other) == _rows(sqlite)


def test_a_backup_of_an_older_schema_is_brought_to_this_one(sqlite: Database, tmp_path: Path) -> None:
    _fill(sqlite)
    file = tmp_path / "old.zip"
    back_up_install(sqlite, file, "0.1.0", NOW)
    tables = _as_they_were(file, tmp_path)
    parts = {name: _part(data) for name, data in tables.items()}
    members = {f"tables/{name}.jsonl": data for name, data in tables.items()}
    _edit(file, lambda manifest: manifest | {"schema": OLDER, "tables": parts}, members)
    target = open_database(f"sqlite:///{tmp_path}/target.sqlite3")
    restore_install(target, file)
    assert _rows(target) == _rows(sqlite)
    assert "gpu_lease" in inspect(target.engine).get_table_names()
    target.engine.dispose()


def _as_they_were(file: Path, folder: Path) -> dict[str, bytes]:
    """The rows of a backup as the older schema had them: without what came later."""
    older = open_database(f"sqlite:///{folder}/older.sqlite3")
    with older.engine.execution_options(writes=True).begin() as connection:
        backup._upgrade(connection, OLDER)
    inspected = inspect(older.engine)
    found = {}
    with zipfile.ZipFile(file) as parts:
        for table in set(inspected.get_table_names()) & {Path(name).stem for name in parts.namelist()}:
            had = {column["name"] for column in inspected.get_columns(table)}
            rows = [json.loads(line) for line in parts.read(f"tables/{table}.jsonl").splitlines()]
            kept = [{name: value for name, value in row.items() if name in had} for row in rows]
            found[table] = b"".join(json.dumps(row).encode() + b"\n" for row in kept)
    older.engine.dispose()
    return found


def _part(data: bytes) -> dict[str, object]:
    return {"rows": data.count(b"\n"), "sha256": hashlib.sha256(data).hexdigest()}


def _edit(file: Path, change: Any, tables: dict[str, bytes] | None = None) -> None:
    with zipfile.ZipFile(file) as before:
        parts = {name: before.read(name) for name in before.namelist()}
    parts["manifest.json"] = json.dumps(change(json.loads(parts["manifest.json"]))).encode()
    with zipfile.ZipFile(file, "w") as after:
        for name, data in (parts | (tables or {})).items():
            after.writestr(name, data)


def _damaged(manifest: dict[str, Any]) -> dict[str, Any]:
    manifest["tables"]["run"]["sha256"] = "0" * 64
    return manifest


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (_damaged, "tables/run.jsonl is not as it was written"),
        (lambda manifest: manifest | {"format": 9}, "has format 9; this release reads format 1"),
        (lambda manifest: {"rows": 3}, "has no manifest.json that can be read"),
        (lambda manifest: manifest | {"schema": "2099_01_01"}, "2099_01_01, which this release"),
    ],
)
def test_a_file_that_is_not_right_changes_nothing(sqlite: Database, tmp_path: Path, change: Any, says: str) -> None:
    _fill(sqlite)
    before = _rows(sqlite)
    file = tmp_path / "all.zip"
    back_up_install(sqlite, file, "0.1.0", NOW)
    _edit(file, change)
    with pytest.raises((BadBackup, DatabaseTooNew), match=says):
        restore_install(sqlite, file)
    assert _rows(sqlite) == before


def test_rows_that_belong_to_nobody_change_nothing(database: Database, tmp_path: Path) -> None:
    """Found by the database itself, when half of it is done."""
    _fill(database)
    file = tmp_path / "all.zip"
    back_up_install(database, file, "0.1.0", NOW)
    before = _rows(database)
    chunk = {"run_id": 999, "sequence": 1, "events": [], "created_at": NOW.isoformat()}
    data = json.dumps(chunk).encode() + b"\n"

    def change(manifest: dict[str, Any]) -> dict[str, Any]:
        return manifest | {"tables": manifest["tables"] | {"run_chunk": _part(data)}}

    _edit(file, change, {"tables/run_chunk.jsonl": data})
    with pytest.raises(BadBackup, match="nothing has changed"):
        restore_install(database, file)
    assert _rows(database) == before


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 cut off", b"not a zip at all"])
def test_what_is_no_backup_is_said(sqlite: Database, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.zip").write_bytes(content)
    with pytest.raises(BadBackup, match="is no backup of ours"):
        restore_install(sqlite, tmp_path / "x.zip")
    with pytest.raises(BadBackup, match="cannot be read: No such file"):
        restore_install(sqlite, tmp_path / "nowhere.zip")


def test_nothing_is_written_over(sqlite: Database, tmp_path: Path) -> None:
    out = tmp_path / "all.zip"
    out.write_text("mine")
    with pytest.raises(DomainError, match="is there already"):
        back_up_install(sqlite, out, "0.1.0", NOW)
    assert out.read_text() == "mine"
    with pytest.raises(DomainError, match="cannot be written: No such file"):
        back_up_install(sqlite, tmp_path / "no" / "folder.zip", "0.1.0", NOW)


@pytest.mark.slow
def test_an_install_is_reset_and_brought_back_by_commands(
    rankzero: Command, sqlite_template: Path, tmp_path: Path
) -> None:
    data = tmp_path / "install"
    (data / "runs" / "1-abcd").mkdir(parents=True)
    shutil.copy(sqlite_template, data / "rankzero.sqlite3")
    database = open_database(f"sqlite:///{data}/rankzero.sqlite3")
    _fill(database)
    file = tmp_path / "all.zip"
    assert "in " in rankzero("backup", str(file), data=str(data))[1]
    code, said, _ = rankzero("reset", "--yes")
    assert code == 0
    assert "before-reset" in said
    assert not holds_anything(database)
    assert not (data / "runs").exists()
    code, said, _ = rankzero("restore", str(file))
    assert code == 0
    with database.read() as session:
        assert session.scalar(select(func.count(Run.id))) == 2
        assert session.scalar(select(func.count(Chunk.sequence))) == 1
    code, said, _ = rankzero("copy", f"sqlite:///{tmp_path}/second.sqlite3")
    assert code == 0
    again = rankzero("copy", f"sqlite:///{tmp_path}/second.sqlite3")
    assert again[0] == 2
    assert "holds something" in again[2]
    database.engine.dispose()


def test_a_running_install_is_left_alone(rankzero: Command, sqlite_template: Path, tmp_path: Path) -> None:
    data = tmp_path / "install"
    data.mkdir()
    shutil.copy(sqlite_template, data / "rankzero.sqlite3")
    running = Install(data)
    assert running.hold()
    code, _, errors = rankzero("reset", "--yes", data=str(data))
    assert code == 2
    assert "Stop it first" in errors
