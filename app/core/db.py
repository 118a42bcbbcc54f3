"""The database: SQLite or PostgreSQL through the same typed models, sessions and migrations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import JSON, DateTime, Dialect, Engine, MetaData, create_engine, event, func, select
from sqlalchemy.orm import DeclarativeBase, Session, sessionmaker
from sqlalchemy.types import TypeDecorator

from app.core.clock import utc_now
from app.core.limits import Limits

BUSY_TIMEOUT_MILLISECONDS = 10_000


class UtcDateTime(TypeDecorator[datetime]):
    """An aware UTC datetime. SQLite has no zones: what was stored as UTC comes back as UTC."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"naive datetime {value!r}: times are stored in UTC")
        return value.astimezone(UTC)

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], datetime | None]:
        """In one call a value: by way of `process_result_value` it takes twice as long, and rows are full of times."""
        inner = self.impl_instance.dialect_impl(dialect).result_processor(dialect, coltype)

        def process(value: Any) -> datetime | None:
            read = value if value is None or inner is None else inner(value)
            if read is None:
                return None
            return read.replace(tzinfo=UTC) if read.tzinfo is None else read.astimezone(UTC)  # type: ignore[no-any-return]

        return process


class Base(DeclarativeBase):
    """Parent of every table."""

    type_annotation_map = {datetime: UtcDateTime, dict[str, Any]: JSON, list[Any]: JSON}  # noqa: RUF012 - SQLAlchemy's protocol
    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(column_0_N_label)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
            "pk": "pk_%(table_name)s",
        }
    )


@dataclass(frozen=True)
class Database:
    """An engine with its two kinds of session.

    On SQLite, reading first and writing later in one transaction fails at once with SQLITE_BUSY_SNAPSHOT when
    somebody else wrote in between, whatever the busy timeout. So a session that may write takes the write lock
    when it begins (BEGIN IMMEDIATE) and waits its turn there.
    """

    engine: Engine
    reading: sessionmaker[Session]
    writing: sessionmaker[Session]

    @contextmanager
    def read(self) -> Iterator[Session]:
        """A session that only reads."""
        with self.reading() as session:
            yield session

    @contextmanager
    def write(self) -> Iterator[Session]:
        """A session that commits when the block ends and rolls back when it raises. Services only flush."""
        with self.writing() as session, session.begin():
            yield session


def open_database(url: str, limits: Limits = Limits()) -> Database:  # noqa: B008 - it is frozen
    """Connect to `url` (SQLAlchemy form); its sessions carry what runs may take."""
    if url.startswith("sqlite"):
        # the connection given back last is taken first: SQLite drops a connection's pages once another one has written
        engine = create_engine(url, pool_use_lifo=True, connect_args={"timeout": BUSY_TIMEOUT_MILLISECONDS / 1000})
        event.listen(engine, "connect", _configure_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
    else:
        engine = create_engine(url, pool_pre_ping=True, pool_size=10, max_overflow=20)
    return Database(
        engine,
        sessionmaker(engine, expire_on_commit=False, info=limits.as_info()),
        sessionmaker(engine.execution_options(writes=True), expire_on_commit=False, info=limits.as_info()),
    )


def database_time(session: Session) -> datetime:
    """Now by the database's own clock, in UTC. Leases and signs of life of different hosts are compared by it alone:
    those hosts' clocks may be far apart."""
    if session.get_bind().dialect.name == "sqlite":  # a file of this host: its clock is ours
        return utc_now()
    said: datetime = session.execute(select(func.clock_timestamp())).scalar_one()
    return said.astimezone(UTC)


def _configure_sqlite(connection: Any, _record: Any) -> None:
    connection.isolation_level = None  # we say BEGIN ourselves, below
    for pragma in (
        "journal_mode=WAL",
        "synchronous=NORMAL",
        "foreign_keys=ON",
        f"busy_timeout={BUSY_TIMEOUT_MILLISECONDS}",
    ):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: Any) -> None:
    writes = connection.get_execution_options().get("writes")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
