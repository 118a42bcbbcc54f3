"""Writing about a run, through absences of the database.

What the ranks report is in the run's folder, whatever the database does: while it is away nothing more is read of that,
the ranks go on, and once it is back everything is written, in order and once.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Event as Flag
from typing import TypeVar

import structlog
from sqlalchemy.exc import DBAPIError, InterfaceError, InternalError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.orm import Session

from app.core.db import Database
from app.core.disk import is_disk_full

log = structlog.get_logger()

FIRST_WAIT_SECONDS = 0.1
LONGEST_WAIT_SECONDS = 2.0
LONGEST_ABSENCE_SECONDS = 60.0  # after which ranks that still work are ended: nobody could see or cancel them

T = TypeVar("T", int, bool)


class StoppedWhileAway(Exception):
    """The worker was told to stop before the database was back."""


def is_away(error: SQLAlchemyError) -> bool:
    """Whether `error` says that the database cannot be used just now, rather than that what was asked is wrong."""
    if isinstance(error, OperationalError | InterfaceError | InternalError | PoolTimeout):
        return True
    return isinstance(error, DBAPIError) and error.connection_invalidated


class Writer:
    """One run's way into the database. Backs off while it is away; knows for how long it has been."""

    def __init__(self, database: Database, run_id: int) -> None:
        self._database, self._run_id = database, run_id
        self._away_since: float | None = None
        self.is_disk_full = False
        self._next_try = 0.0
        self._wait = FIRST_WAIT_SECONDS

    @property
    def is_away(self) -> bool:
        return self._away_since is not None

    @property
    def seconds_away(self) -> float:
        return 0.0 if self._away_since is None else time.monotonic() - self._away_since

    @property
    def may_try(self) -> bool:
        """Whether it is time to try: always, unless the database was away a moment ago."""
        return time.monotonic() >= self._next_try

    def attempt(self, write: Callable[[Session], T]) -> T | None:
        """What `write` returns; None while the database is away. `write` may be called again after it was committed
        and the answer lost: it must be harmless twice."""
        if not self.may_try:
            return None
        began = time.monotonic()
        try:
            with self._database.write() as session:
                done = write(session)
        except SQLAlchemyError as error:
            if not is_away(error):
                raise
            self._note_absence(began, error)
            return None
        if self._away_since is not None:
            log.warning("database is back", run=self._run_id, seconds=round(self.seconds_away, 1))
        self._away_since, self._next_try, self._wait = None, 0.0, FIRST_WAIT_SECONDS
        self.is_disk_full = False
        return done

    def insist(self, write: Callable[[Session], T], stopping: Flag) -> T:
        """The same, until it is done: what a run came to is not given up. Raises StoppedWhileAway."""
        while (done := self.attempt(write)) is None:
            if stopping.wait(max(0.0, self._next_try - time.monotonic())):
                raise StoppedWhileAway
        return done

    def _note_absence(self, began: float, error: SQLAlchemyError) -> None:
        self.is_disk_full = is_disk_full(error)
        if self._away_since is None:
            self._away_since = began
            log.warning("database is away, the run goes on", run=self._run_id, error=str(error.__cause__ or error))
        self._next_try = time.monotonic() + self._wait
        self._wait = min(2 * self._wait, LONGEST_WAIT_SECONDS)
