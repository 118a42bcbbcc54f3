"""Streaming a run to its viewers: one reader per run and process, however many look on.

The reader asks the database for new chunks when Redis says there are some, and once a second in any case: losing Redis
costs a second, never an event. Nobody holds a database session while waiting. For viewers with the run's page before
them the reader also draws the page's parts, once for all, in a thread: rendering must not keep other requests waiting.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from math import inf
from typing import Literal

import redis.asyncio
import structlog
from redis.exceptions import RedisError

from app.content.catalogue import Catalogue
from app.core.db import Database
from app.core.moment import Moment
from app.core.queue import Queue, run_channel
from app.lab import queries
from app.lab.folds import Folds
from app.lab.live import LivePage
from app.lab.models import ENDED, Run

log = structlog.get_logger()

POLL_SECONDS = 1.0
DRAW_SECONDS = 0.35  # at least, between two drawings of a page
MOST_QUEUED = 1000  # a viewer further behind than this is disconnected; it resumes with Last-Event-ID


@dataclass(frozen=True)
class Message:
    """One server-sent event. A `part` has no sequence: whoever resumes gets all parts as they are then."""

    kind: Literal["chunk", "part", "end"]
    data: str
    sequence: int | None = None


class _Drawn:
    """Says in an inbox that the page was drawn again. Its parts are read when they are sent: who is slow skips some."""


_DRAWN = _Drawn()
_Inbox = asyncio.Queue[Message | _Drawn | None]


@dataclass
class _Feed:
    """A run that is being looked at."""

    run_id: int
    last: int = 0
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    viewers: set[_Inbox] = field(default_factory=set)
    task: asyncio.Task[None] | None = None
    page: LivePage | None = None  # once somebody looks at the page
    drawn_at: float = -inf
    is_stale: bool = False  # chunks came since it was drawn

    @property
    def draw_at(self) -> float:
        """When the page is to be drawn next; its clock goes on without chunks, too."""
        return self.drawn_at + (DRAW_SECONDS if self.is_stale else POLL_SECONDS)


class Hub:
    """All feeds of this process."""

    def __init__(
        self, database: Database, queue: Queue, content: Catalogue, folds: Folds, moment: Callable[[], Moment]
    ) -> None:
        self._database, self._content, self._folds, self._moment = database, content, folds, moment
        self._redis_url = queue.redis_url
        self._feeds: dict[int, _Feed] = {}
        self._client: redis.asyncio.Redis | None = None

    async def follow(self, run_id: int, after: int, *, with_parts: bool = False) -> AsyncIterator[Message]:
        """Every chunk behind `after`, as they come, then the end. Nothing is lost or doubled in between.

        The feed notes where it starts, then the viewer reads history up to now; what arrives twice is recognised
        by its sequence. `with_parts` also sends all parts of the run's page, then those that change.
        """
        inbox: _Inbox = asyncio.Queue(MOST_QUEUED)
        feed = self._join(run_id, inbox, with_parts)
        page, drawing = feed.page if with_parts else None, 0
        try:
            await feed.ready.wait()
            history, ended = await asyncio.to_thread(self._read, run_id, after)
            for message in history:
                yield message
                after = message.sequence or after
            if page is not None:
                await asyncio.to_thread(page.draw, once=not ended)
                messages, drawing = _parts_after(page, drawing)
                for message in messages:
                    yield message
            if ended:
                yield _end(after, ended)
                return
            while (message_or_drawn := await inbox.get()) is not None:
                if isinstance(message_or_drawn, _Drawn):
                    if page is not None:
                        messages, drawing = _parts_after(page, drawing)
                        for message in messages:
                            yield message
                    continue
                sequence = message_or_drawn.sequence or 0
                if message_or_drawn.kind == "end" or sequence > after:
                    yield message_or_drawn
                    after = sequence
                if message_or_drawn.kind == "end":
                    return
        finally:
            self._leave(feed, inbox)

    async def close(self) -> None:
        """End every feed: the server stops."""
        for feed in list(self._feeds.values()):
            if feed.task is not None:
                feed.task.cancel()
            for inbox in list(feed.viewers):
                _hang_up(inbox)
        if self._client is not None:
            await self._client.aclose()

    def _join(self, run_id: int, inbox: _Inbox, with_parts: bool) -> _Feed:
        feed = self._feeds.get(run_id)
        if feed is None:
            feed = self._feeds[run_id] = _Feed(run_id)
            feed.task = asyncio.create_task(self._run(feed))
        if with_parts and feed.page is None:
            feed.page = LivePage(self._database, self._content, self._folds, run_id, self._moment)
        feed.viewers.add(inbox)
        return feed

    def _leave(self, feed: _Feed, inbox: _Inbox) -> None:
        feed.viewers.discard(inbox)
        if not feed.viewers:
            if self._feeds.get(feed.run_id) is feed:
                del self._feeds[feed.run_id]
            if feed.task is not None:
                feed.task.cancel()

    async def _run(self, feed: _Feed) -> None:
        """Read new chunks whenever there may be some, until the run has ended."""
        try:
            async with contextlib.AsyncExitStack() as stack:
                wait = await self._waiter(feed.run_id, stack)
                feed.last = await asyncio.to_thread(self._newest, feed.run_id)
                feed.ready.set()
                while not await self._pass_on(feed):
                    await wait(self._seconds_to_wait(feed))
        except Exception as error:  # the database went away: viewers reconnect and resume, and so does the feed
            log.warning("stream broke off", run=feed.run_id, error=str(error))
        finally:
            if self._feeds.get(feed.run_id) is feed:
                del self._feeds[feed.run_id]
            feed.ready.set()
            for inbox in list(feed.viewers):
                _hang_up(inbox)

    async def _pass_on(self, feed: _Feed) -> bool:
        """Send what is new to every viewer; returns whether the run has ended. Its page is drawn before its end."""
        messages, ended = await asyncio.to_thread(self._read, feed.run_id, feed.last)
        for message in messages:
            feed.last, feed.is_stale = message.sequence or feed.last, True
            self._send(feed, message)
        if feed.page is not None and (ended or time.monotonic() >= feed.draw_at):
            is_first = feed.drawn_at == -inf and not ended  # unless a viewer that came just now has drawn it
            await asyncio.to_thread(feed.page.draw, once=is_first)
            feed.drawn_at, feed.is_stale = time.monotonic(), is_first and feed.is_stale
            self._send(feed, _DRAWN)
        if ended:
            self._send(feed, _end(feed.last, ended))
        return ended is not None

    def _seconds_to_wait(self, feed: _Feed) -> float:
        """Until the next look without a wake-up."""
        if feed.page is None:
            return POLL_SECONDS
        return min(max(0.0, feed.draw_at - time.monotonic()), POLL_SECONDS)

    def _send(self, feed: _Feed, message: Message | _Drawn) -> None:
        for inbox in list(feed.viewers):
            if not _offer(inbox, message):
                feed.viewers.discard(inbox)
                _hang_up(inbox)

    def _newest(self, run_id: int) -> int:
        with self._database.read() as session:
            run = session.get(Run, run_id)
            return run.chunks if run is not None else 0

    def _read(self, run_id: int, after: int) -> tuple[list[Message], str | None]:
        """New chunks and, once the run has ended, its status. The status is read first: chunks precede the end."""
        with self._database.read() as session:
            run = session.get(Run, run_id)
            status = run.status if run is not None and run.status in ENDED else None
            messages: list[Message] = []
            while chunks := queries.list_chunks(session, run_id, after):
                for chunk in chunks:
                    body = json.dumps({"sequence": chunk.sequence, "events": chunk.events}, separators=(",", ":"))
                    messages.append(Message("chunk", body, chunk.sequence))
                after = chunks[-1].sequence
        return messages, status

    async def _waiter(self, run_id: int, stack: contextlib.AsyncExitStack) -> Callable[[float], Awaitable[None]]:
        """A function that returns when Redis wakes us or so many seconds have passed."""
        try:
            if self._client is None:
                self._client = redis.asyncio.Redis.from_url(self._redis_url, socket_connect_timeout=2)
            subscription = self._client.pubsub(ignore_subscribe_messages=True)
            await subscription.subscribe(run_channel(run_id))
            stack.push_async_callback(subscription.aclose)
        except (RedisError, OSError, ValueError) as error:
            log.warning("no wake-ups, polling instead", run=run_id, error=str(error))
            return lambda seconds: asyncio.sleep(min(seconds, POLL_SECONDS / 2))

        async def wait(seconds: float) -> None:
            try:
                await subscription.get_message(timeout=seconds)
            except (RedisError, OSError):
                await asyncio.sleep(min(seconds, POLL_SECONDS / 2))

        return wait


def _end(sequence: int, status: str) -> Message:
    return Message("end", json.dumps({"status": status}), sequence)


def _parts_after(page: LivePage, drawing: int) -> tuple[list[Message], int]:
    """The parts that changed behind a drawing, and the newest drawing they come from."""
    parts = page.parts_after(drawing)
    messages = [Message("part", json.dumps({"name": part.name, "html": part.html})) for part in parts]
    return messages, max((part.drawing for part in parts), default=drawing)


def _hang_up(inbox: _Inbox) -> None:
    """Tell a viewer that nothing more comes, making room if its queue is full."""
    if not _offer(inbox, None):
        with contextlib.suppress(asyncio.QueueEmpty):
            inbox.get_nowait()
        _offer(inbox, None)


def _offer(inbox: _Inbox, message: Message | _Drawn | None) -> bool:
    try:
        inbox.put_nowait(message)
    except asyncio.QueueFull:
        return False
    return True
