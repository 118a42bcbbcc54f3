"""What routes depend on: sessions, time and the learner. One transaction a request, committed before the reply."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Annotated

from fastapi import Depends, FastAPI, Header, Path, Query, Request
from fastapi.responses import Response
from sqlalchemy.orm import Session

from app.core.db import Database
from app.core.errors import DomainError, Violation
from app.core.models import LOCAL_LEARNER
from app.core.moment import Moment
from app.core.queue import Queue

# What only looks something up is async: FastAPI sends every plain function through a thread, 0.1 ms and more each.


class JsonLines(Response):
    """A JSON object a line."""

    media_type = "application/jsonl"


async def _database(request: Request) -> Database:
    database: Database = request.app.state.database
    return database


async def _queue(request: Request) -> Queue:
    queue: Queue = request.app.state.queue
    return queue


def moment_in(app: FastAPI) -> Moment:
    """Now, by the application's clock and in its learner's zone."""
    return Moment(app.state.clock(), app.state.zone)


def moment_of(request: Request) -> Moment:
    """When a request is answered: read once, the same for all that has to do with it."""
    if not hasattr(request.state, "moment"):
        request.state.moment = moment_in(request.app)
    moment: Moment = request.state.moment
    return moment


async def _moment(request: Request) -> Moment:
    return moment_of(request)


async def _now(request: Request) -> datetime:
    return moment_of(request).now


async def _learner() -> int:
    return LOCAL_LEARNER


def _read(request: Request) -> Iterator[Session]:
    database: Database = request.app.state.database
    with database.read() as session:
        yield session


def _write(request: Request) -> Iterator[Session]:
    database: Database = request.app.state.database
    with database.write() as session:
        yield session


# scope="function" closes the session *before* the response is sent. FastAPI's default ends it afterwards, so that
# POST → redirect → GET reads rows that are not committed yet (measured: 0.3 s later).
ReadSession = Annotated[Session, Depends(_read, scope="function")]
WriteSession = Annotated[Session, Depends(_write, scope="function")]
Now = Annotated[datetime, Depends(_now)]  # where the learner's zone does not matter
CurrentMoment = Annotated[Moment, Depends(_moment)]
LearnerId = Annotated[int, Depends(_learner)]
Db = Annotated[Database, Depends(_database)]
MOST_ROW_ID = 2**31 - 1  # what both databases can look up
RowId = Annotated[int, Path(ge=1, le=MOST_ROW_ID)]
WorkQueue = Annotated[Queue, Depends(_queue)]
MOST_CHUNKS = 2**31 - 1  # what the database counts with


def _chunk_number(last_event_id: str) -> int:
    """The chunk a viewer saw last. Raises DomainError for what no stream of ours has sent."""
    if last_event_id.isascii() and last_event_id.isdecimal() and len(last_event_id) <= len(str(MOST_CHUNKS)):
        return min(int(last_event_id), MOST_CHUNKS)
    shown = last_event_id[:40]
    raise DomainError(
        "There is no such place in the events.",
        [Violation("Last-Event-ID", shown, f"{shown!r} is no chunk's number.", f"0 to {MOST_CHUNKS:,}")],
    )


async def _seen_chunk(
    after: Annotated[int, Query(ge=0, le=MOST_CHUNKS)] = 0, last_event_id: Annotated[str | None, Header()] = None
) -> int:
    return _chunk_number(last_event_id) if last_event_id else after


SeenChunk = Annotated[int, Depends(_seen_chunk)]  # behind which chunk a stream starts: `Last-Event-ID`, else `?after=`
