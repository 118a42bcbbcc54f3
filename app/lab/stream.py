"""Streaming a run to its viewers: one reader per run and process, however many look on.

The reader asks the database for new chunks when Redis says there are some, and once a second in any case: losing Redis
costs a second, never an event. Nobody holds a database session while waiting.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

import redis.asyncio
import structlog
from redis.exceptions import RedisError

from app.core.db import Database
from app.core.queue import Queue, run_channel
from app.lab import queries
from app.lab.models import ENDED, Run

log = structlog.get_logger()

POLL_SECONDS = 1.0
MOST_QUEUED = 1000  # a viewer further behind than this is disconnected; it resumes with Last-Event-ID


@dataclass(frozen=True)
class Message:
    """One server-sent event: a chunk, or the end of the run."""

    sequence: int
    data: str
    end: bool = False


@dataclass
class _Feed:
    """A run that is being looked at."""

    run_id: int
    last: int = 0
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    viewers: set[asyncio.Queue[Message | None]] = field(default_factory=set)
    task: asyncio.Task[None] | None = None


class Hub:
    """All feeds of this process."""

    def __init__(self, database: Database, queue: Queue) -> None:
        self._database = database
        self._redis_url = queue.redis_url
        self._feeds: dict[int, _Feed] = {}
        self._client: redis.asyncio.Redis | None = None

    async def follow(self, run_id: int, after: int) -> AsyncIterator[Message]:
        """Every chunk behind `after`, as they come, then the end. Nothing is lost or doubled in between.

        The feed notes where it starts, then the viewer reads history up to now; what arrives twice is recognised
        by its sequence.
        """
        inbox: asyncio.Queue[Message | None] = asyncio.Queue(MOST_QUEUED)
        feed = self._join(run_id, inbox)
        try:
            await feed.ready.wait()
            history, ended = await asyncio.to_thread(self._read, run_id, after)
            for message in history:
                yield message
                after = message.sequence
            if ended:
                yield Message(after, json.dumps({"status": ended}), end=True)
                return
            while (message_or_end := await inbox.get()) is not None:
                if message_or_end.end or message_or_end.sequence > after:
                    yield message_or_end
                    after = message_or_end.sequence
                if message_or_end.end:
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

    def _join(self, run_id: int, inbox: asyncio.Queue[Message | None]) -> _Feed:
        feed = self._feeds.get(run_id)
        if feed is None:
            feed = self._feeds[run_id] = _Feed(run_id)
            feed.task = asyncio.create_task(self._run(feed))
        feed.viewers.add(inbox)
        return feed

    def _leave(self, feed: _Feed, inbox: asyncio.Queue[Message | None]) -> None:
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
                    await wait()
        except Exception as error:  # the database went away: viewers reconnect and resume, and so does the feed
            log.warning("stream broke off", run=feed.run_id, error=str(error))
        finally:
            if self._feeds.get(feed.run_id) is feed:
                del self._feeds[feed.run_id]
            feed.ready.set()
            for inbox in list(feed.viewers):
                _hang_up(inbox)

    async def _pass_on(self, feed: _Feed) -> bool:
        """Send what is new to every viewer; returns whether the run has ended."""
        messages, ended = await asyncio.to_thread(self._read, feed.run_id, feed.last)
        for message in messages:
            feed.last = message.sequence
            self._send(feed, message)
        if ended:
            self._send(feed, Message(feed.last, json.dumps({"status": ended}), end=True))
        return ended is not None

    def _send(self, feed: _Feed, message: Message) -> None:
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
                    messages.append(Message(chunk.sequence, body))
                after = chunks[-1].sequence
        return messages, status

    async def _waiter(self, run_id: int, stack: contextlib.AsyncExitStack) -> Callable[[], Awaitable[None]]:
        """A function that returns when Redis wakes us or a second has passed."""
        try:
            if self._client is None:
                self._client = redis.asyncio.Redis.from_url(self._redis_url, socket_connect_timeout=2)
            subscription = self._client.pubsub(ignore_subscribe_messages=True)
            await subscription.subscribe(run_channel(run_id))
            stack.push_async_callback(subscription.aclose)
        except (RedisError, OSError, ValueError) as error:
            log.warning("no wake-ups, polling instead", run=run_id, error=str(error))
            return lambda: asyncio.sleep(POLL_SECONDS / 2)

        async def wait() -> None:
            try:
                await subscription.get_message(timeout=POLL_SECONDS)
            except (RedisError, OSError):
                await asyncio.sleep(POLL_SECONDS / 2)

        return wait


def _hang_up(inbox: asyncio.Queue[Message | None]) -> None:
    """Tell a viewer that nothing more comes, making room if its queue is full."""
    if not _offer(inbox, None):
        with contextlib.suppress(asyncio.QueueEmpty):
            inbox.get_nowait()
        _offer(inbox, None)


def _offer(inbox: asyncio.Queue[Message | None], message: Message | None) -> bool:
    try:
        inbox.put_nowait(message)
    except asyncio.QueueFull:
        return False
    return True
