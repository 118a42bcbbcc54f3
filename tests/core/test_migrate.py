"""Schemas: the newest is reached from nothing, models and migrations agree, newer databases are left alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import select, text

from app.core.db import Database, open_database
from app.core.migrate import DatabaseTooNew, alembic_config, back_up, known_schemas, migrate, newest_schema
from app.core.models import LOCAL_LEARNER, Learner
from app.models import METADATA
from tests.conftest import NOW
from tests.support.product import environment, free_port


def test_models_and_migrations_say_the_same(database: Database) -> None:
    with database.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, METADATA) == []


def test_the_local_learner_is_there(database: Database) -> None:
    with database.read() as session:
        assert session.scalars(select(Learner.id)).all() == [LOCAL_LEARNER]


def test_every_learner_owned_table_says_whose_it_is() -> None:
    belongs_to_nobody = {"learner", "worker_presence", "item_source", "served_release"}
    belongs_through = {
        "run_chunk": "run_id",
        "code_chunk": "submission_id",
        "gpu_lease": "run_id",
        "sitting_answer": "sitting_id",
    }
    for table in METADATA.sorted_tables:
        if table.name not in belongs_to_nobody:
            assert belongs_through.get(table.name, "learner_id") in table.columns, table.name


def test_a_second_migration_does_nothing(sqlite: Database, tmp_path: Path) -> None:
    assert migrate(sqlite, NOW, tmp_path / "backups") is None
    assert not (tmp_path / "backups").exists()


def test_an_old_file_is_copied_before_its_schema_changes(tmp_path: Path) -> None:
    path = tmp_path / "old.sqlite3"
    database = open_database(f"sqlite:///{path}")
    with database.engine.begin() as connection:  # the schema before the first: only Alembic's own table
        connection.execute(text("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)"))
        connection.execute(text("CREATE TABLE keepsake (word TEXT)"))
        connection.execute(text("INSERT INTO keepsake VALUES ('kept')"))
    copied = back_up(database, NOW, tmp_path / "backups")
    assert copied is not None
    backup = open_database(f"sqlite:///{copied}")
    with backup.engine.connect() as connection:
        assert connection.execute(text("SELECT word FROM keepsake")).scalar() == "kept"
    backup.engine.dispose()
    database.engine.dispose()


def test_a_database_of_a_newer_release_is_refused_and_left_as_it_is(sqlite: Database, tmp_path: Path) -> None:
    with sqlite.engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '2031_01_01_01'"))
    with pytest.raises(DatabaseTooNew, match=r"2031_01_01_01.*newer"):
        migrate(sqlite, NOW, tmp_path / "backups")
    with sqlite.engine.connect() as connection:
        assert connection.execute(text("SELECT version_num FROM alembic_version")).scalar() == "2031_01_01_01"


@pytest.mark.slow
def test_a_web_server_of_an_older_release_does_not_serve_a_newer_database(sqlite: Database, tmp_path: Path) -> None:
    with sqlite.engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '2031_01_01_01'"))
    url = sqlite.engine.url.render_as_string(hide_password=False)
    command = [sys.executable, "-m", "app.cli", "serve", "--port", str(free_port())]
    variables = environment(tmp_path, RANKZERO_DATABASE_URL=url)
    ended = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 2
    assert "2031_01_01_01" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_schemas_read_from_the_files_are_alembics() -> None:
    scripts = ScriptDirectory.from_config(alembic_config())
    theirs = {each.revision: each.down_revision or "" for each in scripts.walk_revisions()}
    assert dict(known_schemas()) == theirs
    assert newest_schema() == scripts.get_current_head()
