"""Fixtures: a migrated database of each kind, a clock that stands still, an application over both."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from fastapi.testclient import TestClient
from hypothesis import settings as properties
from sqlalchemy import text

from app.content.catalogue import Catalogue
from app.core.db import Database, open_database
from app.core.migrate import migrate
from app.core.moment import Moment
from app.core.settings import Settings
from app.core.zone import learner_zone
from app.models import METADATA
from labs.warm import WarmHost
from tests.labs.ranks import warm_host
from tests.support.product import SharedProduct
from tests.support.redis import running_redis
from tests.support.shipped import shipped
from tests.support.slurm import NEEDS

if TYPE_CHECKING:
    from labs.code.sandbox import Pool
    from tests.support.postgres import OwnPostgres

pytest_plugins = ["tests.support.forked", "tests.support.postgres"]

# A busy machine takes long over what is right, and what fails once must fail again.
properties.register_profile("same-every-time", derandomize=True, deadline=None, database=None)
properties.load_profile("same-every-time")

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
ROOM = Path(__file__).parent
# What takes minutes starts first, so that no worker is left with it at the end.
LONGEST_FIRST = ("labs/test_matrix.py", "journeys", "labs", "worker", "operate")
# Journeys that need workers: one product for them all, for it takes longer to start than most of them to live through.
ONE_PRODUCT = [
    ROOM / f"journeys/test_{name}.py"
    for name in ("code_lab", "film_and_player", "first_minute", "interview", "lab", "pages")
]
# The second file ends the product that both use.
SHARED_PRODUCT = [ROOM / "attacks/test_folders.py", ROOM / "operate/test_start.py"]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """In which order workers take files, each whole, for its tests share fixtures: those with slow tests first."""
    for path, of_file in groupby(items, lambda item: item.path):
        is_journey, of_one, of_shared = path.parent == ROOM / "journeys", path in ONE_PRODUCT, path in SHARED_PRODUCT
        for item in of_file:
            if is_journey:
                item.add_marker(pytest.mark.slow)
            if of_one:
                item.add_marker(pytest.mark.together("one product"))
            if of_shared and item.get_closest_marker("slow") is not None:
                item.add_marker(pytest.mark.together("shared product"))
    items.sort(key=_turn)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Whoever has no root or no namespaces is told what was left out therefore."""
    left_out = [each.longrepr[2] for each in terminalreporter.getreports("skipped") if isinstance(each.longrepr, tuple)]
    for reason in sorted({each for each in left_out if NEEDS in each}):
        terminalreporter.write_line(f"Left out: the tests over several hosts. {reason.removeprefix('Skipped: ')}.")


def _turn(item: pytest.Item) -> tuple[int, int]:
    return _turn_of(item.path) if item.get_closest_marker("slow") is not None else (len(LONGEST_FIRST) + 1, 0)


@cache
def _turn_of(path: Path) -> tuple[int, int]:
    """Of a file's slow tests."""
    if path in SHARED_PRODUCT:
        return LONGEST_FIRST.index("operate"), SHARED_PRODUCT.index(path) - len(SHARED_PRODUCT)
    name = path.relative_to(ROOM).as_posix()
    turn = next((turn for turn, place in enumerate(LONGEST_FIRST) if name.startswith(place)), len(LONGEST_FIRST))
    return turn, int(path not in ONE_PRODUCT)


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite file with the newest schema, copied for each test."""
    path = tmp_path_factory.mktemp("template") / "rankzero.sqlite3"
    database = open_database(f"sqlite:///{path}")
    migrate(database, NOW)
    with database.engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    database.engine.dispose()
    return path


@pytest.fixture(scope="session")
def postgres(own_postgres: OwnPostgres) -> Iterator[Database]:
    """A real PostgreSQL with the newest schema, emptied after each test."""

    def prepare(url: str) -> None:
        database = open_database(url)
        migrate(database, NOW)
        database.engine.dispose()

    with own_postgres(prepare) as url:
        database = open_database(url)
        yield database
        database.engine.dispose()


HAS_ROWS = " UNION ALL ".join(
    f"SELECT '{table.name}' WHERE EXISTS (SELECT FROM {table.name})"  # noqa: S608 - names of our own tables
    for table in METADATA.sorted_tables
)
COUNT_ANEW = (
    "SELECT setval(format('%I.%I', schemaname, sequencename)::regclass, 1, false) "
    "FROM pg_sequences WHERE last_value IS NOT NULL"
)


def empty(database: Database) -> None:
    """What has rows loses them. TRUNCATE would make the files of every table anew, which takes longer than a test."""
    with database.engine.begin() as connection:
        filled = set(connection.execute(text(HAS_ROWS)).scalars())
        for table in reversed(METADATA.sorted_tables):
            if table.name in filled:
                connection.execute(table.delete())
        connection.execute(text(COUNT_ANEW))
        connection.execute(text("INSERT INTO learner (name, created_at) VALUES ('You', CURRENT_TIMESTAMP)"))


@pytest.fixture
def sqlite(sqlite_template: Path, tmp_path: Path) -> Iterator[Database]:
    """A SQLite database of one test."""
    path = tmp_path / "rankzero.sqlite3"
    shutil.copy(sqlite_template, path)
    database = open_database(f"sqlite:///{path}")
    yield database
    database.engine.dispose()


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest) -> Iterator[Database]:
    """Each test that touches the database runs on both."""
    if request.param == "sqlite":
        yield request.getfixturevalue("sqlite")
        return
    found: Database = request.getfixturevalue("postgres")
    yield found
    empty(found)


@pytest.fixture
def redis_url(tmp_path: Path) -> Iterator[str]:
    """A real Redis of one test."""
    with running_redis(tmp_path / "redis") as url:
        yield url


@pytest.fixture(scope="session")
def host() -> WarmHost:
    """The one of this test process, loaded once and again only where a test ended it. Who kills or closes it harms
    nobody: it starts again when it is asked."""
    return warm_host()


@pytest.fixture(scope="session")
def code_pool() -> Iterator[Pool]:
    """Sandboxes for programs of code labs, of which torch is loaded into each once."""
    from labs.code.sandbox import Pool

    pool = Pool()
    yield pool
    pool.end()


@pytest.fixture(scope="session")
def shared_product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedProduct]:
    """A product that is started when it is first asked for."""
    shared = SharedProduct(lambda: tmp_path_factory.mktemp("product"))
    yield shared
    shared.close()


@pytest.fixture(scope="session")
def content() -> Catalogue:
    """The catalogue we ship."""
    return shipped()


def moment_at(now: datetime, zone: str = "") -> Moment:
    """What a door hands on at `now`, in a zone or the machine's."""
    return Moment(now, learner_zone(zone))


class Clock:
    """Time that moves when a test says so."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        return self.now

    def advance(self, **by: float) -> datetime:
        self.now += timedelta(**by)
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def settings_for(tmp_path: Path) -> Callable[..., Settings]:
    """Settings of an install of this test's own."""

    def make(**values: object) -> Settings:
        # no Redis: what is nudged and woken is lost, and must not be missed
        # and no token, which tests/attacks asks for
        nowhere = f"unix://{tmp_path}/nothing.sock"
        defaults = {"token": "off", "data": tmp_path / "var", "redis_url": nowhere, "log_level": "error"}
        return Settings(**{**defaults, **values})  # type: ignore[arg-type]

    return make


@pytest.fixture
def client(database: Database, clock: Clock, settings_for: Callable[..., Settings]) -> Iterator[TestClient]:
    """The application in this process, over a real database."""
    from app.main import create_app

    app = create_app(settings_for(), database)
    app.state.clock = clock
    with TestClient(app, base_url="http://127.0.0.1", follow_redirects=False) as client:
        # the lifespan closes what it opened; a database shared between tests must stay
        yield client
