"""Streaming a run to its viewers: one reader per run and process, however many look on.

The reader asks the database for new chunks when Redis says there are some, and once a second in any case: losing Redis
costs a second, never an event. Nobody holds a database session while waiting. For viewers with the run's page before
them the reader also draws the page's parts, once for all, in a thread: rendering must not keep other requests waiting.
What is sent is made into bytes once, whoever gets it, and what was sent lately is kept for those who come. With many
viewers it is the sending that costs: chunks and the parts drawn from them go out together, one write a viewer, and to a
crowd two chunks at a time where they come quickly.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import inf
from typing import Literal

import redis.asyncio
import structlog
from redis.exceptions import RedisError
from sqlalchemy.orm import Session
from sse_starlette import ServerSentEvent

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
DRAW_SECONDS = 0.2  # at least, between two drawings of a page; a worker writes chunks a little less often
CROWD = 16  # viewers, from which on a chunk waits for the next
GATHERED_SECONDS = 0.5  # two chunks of a worker's: who waited as long for the last delivery gets one at once
GATHER_SECONDS = 0.6  # behind the last delivery, at most, a chunk waits for another
MOST_KEPT_CHUNKS = 256  # at the start; a longer run's viewers read for themselves what was before them
MOST_KEPT_BYTES = 4_000_000  # of chunks, of a run that is looked at
MOST_QUEUED = 1000  # a viewer further behind than this is disconnected; it resumes with Last-Event-ID


@dataclass(frozen=True)
class Message:
    """One server-sent event. A `part` has no sequence: whoever resumes gets all parts as they are then."""

    kind: Literal["chunk", "part", "end"]
    data: str
    sequence: int | None = None

    @cached_property
    def wire(self) -> bytes:
        """As it is sent."""
        number = None if self.sequence is None else str(self.sequence)
        return ServerSentEvent(self.data, event=self.kind, id=number).encode()


class _Drawn:
    """Says in an inbox that the page was drawn again. Its parts are read when they are sent: who is slow skips some."""


_DRAWN = _Drawn()
_Inbox = asyncio.Queue[Message | _Drawn | None]
_News = tuple[list[Message], str | None]  # new chunks and, once the run has ended, its status


@dataclass
class _Feed:
    """A run that is being looked at."""

    run_id: int
    last: int = 0
    ended: str | None = None  # as what, once its last chunk was passed on
    kept: deque[Message] = field(default_factory=deque)  # the chunks behind `kept_after`, up to the last
    kept_after: int = 0
    kept_bytes: int = 0
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    viewers: set[_Inbox] = field(default_factory=set)
    task: asyncio.Task[None] | None = None
    page: LivePage | None = None  # once somebody looks at the page
    drawn_at: float = -inf
    passed_at: float = -inf  # when there was something to pass on, last
    sent: tuple[Sequence[Message], bytes] = ((), b"")  # what a viewer was sent last, and its bytes: most get the same
    parts: dict[int, tuple[list[Message], int]] = field(default_factory=dict)  # of a drawing, behind an earlier one
    parts_of: int = 0  # which drawing

    @property
    def is_drawn_in(self) -> float:
        """Seconds until the page may be drawn again, and what came since is passed on; 0 where nobody looks at it."""
        return 0.0 if self.page is None else max(0.0, self.drawn_at + DRAW_SECONDS - time.monotonic())

    @property
    def gathers_for(self) -> float:
        """Seconds that a chunk may still wait for the next, so that each of a crowd gets both in one write; 0 where few
        look on, or the last delivery was long ago."""
        since = time.monotonic() - self.passed_at
        return 0.0 if len(self.viewers) < CROWD or since >= GATHERED_SECONDS else GATHER_SECONDS - since

    def bytes_of(self, batch: Sequence[Message]) -> bytes:
        """As they are sent, put together once for all who get the same."""
        if len(batch) == 1:
            return batch[0].wire
        if self.sent[0] != batch:  # the same messages, mostly: compared by identity first
            self.sent = batch, b"".join(message.wire for message in batch)
        return self.sent[1]

    def keep(self, message: Message) -> None:
        """Note a chunk that is passed on, and let go of the oldest beyond what is kept."""
        self.last = message.sequence or self.last
        self.kept.append(message)
        self.kept_bytes += len(message.wire)
        while self.kept_bytes > MOST_KEPT_BYTES:
            oldest = self.kept.popleft()
            self.kept_after = oldest.sequence or self.kept_after
            self.kept_bytes -= len(oldest.wire)

    def parts_after(self, drawing: int) -> tuple[list[Message], int]:
        """The page's parts that changed behind a drawing, and the newest drawing they come from."""
        if self.page is None:
            return [], drawing
        if self.parts_of != self.page.drawing:
            self.parts, self.parts_of = {}, self.page.drawing
        if drawing not in self.parts:
            parts = self.page.parts_after(drawing)
            messages = [Message("part", json.dumps({"name": part.name, "html": part.html})) for part in parts]
            self.parts[drawing] = messages, max((part.drawing for part in parts), default=drawing)
        return self.parts[drawing]

    def behind(self, after: int) -> list[Message] | None:
        """The chunks behind `after` that were passed on; None where not all of them are kept."""
        if after < self.kept_after:
            return None
        return [message for message in self.kept if (message.sequence or 0) > after]


@dataclass
class _Place:
    """How far a viewer has come."""

    feed: _Feed
    after: int  # the last chunk it has
    drawing: int  # and the last drawing of the page
    with_parts: bool
    is_over: bool = False

    def take(self, messages: Sequence[Message | _Drawn | None]) -> list[Message]:
        """What of these is new to it."""
        batch: list[Message] = []
        for message in messages:
            if message is None:
                self.is_over = True
            elif isinstance(message, _Drawn):
                if self.with_parts:
                    fresh, self.drawing = self.feed.parts_after(self.drawing)
                    batch += fresh
            elif message.kind == "end" or (message.sequence or 0) > self.after:
                batch.append(message)
                self.after, self.is_over = message.sequence or self.after, message.kind == "end"
        return batch


class Hub:
    """All feeds of this process."""

    def __init__(
        self, database: Database, queue: Queue, content: Catalogue, folds: Folds, moment: Callable[[], Moment]
    ) -> None:
        self._database, self._content, self._folds, self._moment = database, content, folds, moment
        self._redis_url = queue.redis_url
        self._feeds: dict[int, _Feed] = {}
        self._client: redis.asyncio.Redis | None = None

    async def stream(self, run_id: int, after: int, *, with_parts: bool = False) -> AsyncIterator[bytes]:
        """What `follow` gives, as bytes that are sent at once."""
        async for feed, messages in self._batches(run_id, after, with_parts):
            yield feed.bytes_of(messages)

    async def follow(self, run_id: int, after: int, *, with_parts: bool = False) -> AsyncIterator[Message]:
        """Every chunk behind `after`, as they come, then the end. Nothing is lost or doubled in between.

        `with_parts` also sends all parts of the run's page, then those that change.
        """
        async for _, messages in self._batches(run_id, after, with_parts):
            for message in messages:
                yield message

    async def _batches(
        self, run_id: int, after: int, with_parts: bool
    ) -> AsyncIterator[tuple[_Feed, Sequence[Message]]]:
        """The viewer joins the feed, then gets what was passed on before; what comes twice is recognised by its
        sequence."""
        inbox: _Inbox = asyncio.Queue(MOST_QUEUED)
        feed = self._join(run_id, inbox, with_parts)
        page, drawing = feed.page if with_parts else None, 0
        try:
            await feed.ready.wait()
            history, ended = feed.behind(after), feed.ended
            if history is None:
                history, ended = await asyncio.to_thread(self._read, run_id, after)
            if history:
                yield feed, history
                after = history[-1].sequence or after
            if page is not None:
                if ended or not page.drawing:
                    await asyncio.to_thread(page.draw, once=not ended)
                messages, drawing = feed.parts_after(drawing)
                if messages:
                    yield feed, messages
            if ended:
                yield feed, [_end(after, ended)]
                return
            place = _Place(feed, after, drawing, with_parts)
            while not place.is_over:
                if batch := place.take(await _all_of(inbox)):
                    yield feed, batch
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
                await self._begin(feed)
                feed.ready.set()
                while feed.ended is None and not await self._pass_on(feed):
                    await wait(POLL_SECONDS)
                    await asyncio.sleep(feed.is_drawn_in)
                    if feed.gathers_for:
                        await wait(feed.gathers_for)
        except Exception as error:  # the database went away: viewers reconnect and resume, and so does the feed
            log.warning("stream broke off", run=feed.run_id, error=str(error))
        finally:
            if self._feeds.get(feed.run_id) is feed:
                del self._feeds[feed.run_id]
            feed.ready.set()
            for inbox in list(feed.viewers):
                _hang_up(inbox)

    async def _begin(self, feed: _Feed) -> None:
        """Where there are few chunks so far, all of them are kept from the start."""
        newest = await asyncio.to_thread(self._newest, feed.run_id)
        if newest > MOST_KEPT_CHUNKS:
            feed.last = feed.kept_after = newest
            return
        messages, feed.ended = await asyncio.to_thread(self._read, feed.run_id, 0)
        for message in messages:
            feed.keep(message)

    async def _pass_on(self, feed: _Feed) -> bool:
        """Send what is new to every viewer; returns whether the run has ended. Its page is drawn before, anew without
        chunks as well: its clock goes on."""
        page = feed.page
        messages, ended = await asyncio.to_thread(self._look, feed, page)
        if page is not None:
            feed.drawn_at = time.monotonic()
        if messages:
            feed.passed_at = time.monotonic()
        for message in messages:
            feed.keep(message)
            self._send(feed, message)
        if page is not None:
            self._send(feed, _DRAWN)
        if ended:
            feed.ended = ended
            self._send(feed, _end(feed.last, ended))
        return ended is not None

    def _send(self, feed: _Feed, message: Message | _Drawn) -> None:
        for inbox in list(feed.viewers):
            if not _offer(inbox, message):
                feed.viewers.discard(inbox)
                _hang_up(inbox)

    def _look(self, feed: _Feed, page: LivePage | None) -> _News:
        """What is new in a run, and with it its page drawn, where somebody looks at that."""
        if page is None:
            return self._read(feed.run_id, feed.last)
        found: _News = [], None

        def read(session: Session, run: Run) -> None:
            nonlocal found
            found = _news(session, run, feed.last)

        is_first = feed.drawn_at == -inf  # unless a viewer that came just now has drawn it
        page.draw(once=is_first, beside=read)
        if is_first and found[1]:
            page.draw()
        return found

    def _newest(self, run_id: int) -> int:
        with self._database.read() as session:
            run = session.get(Run, run_id)
            return run.chunks if run is not None else 0

    def _read(self, run_id: int, after: int) -> _News:
        with self._database.read() as session:
            run = session.get(Run, run_id)
            return ([], None) if run is None else _news(session, run, after)

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


def _news(session: Session, run: Run, after: int) -> _News:
    """The chunks that `run` counts behind `after` and, once it has ended, its status: chunks precede the end."""
    messages: list[Message] = []
    while after < run.chunks and (chunks := queries.list_chunks(session, run.id, after)):
        for sequence, events in chunks:
            body = json.dumps({"sequence": sequence, "events": events}, separators=(",", ":"))
            messages.append(Message("chunk", body, sequence))
            after = sequence
    return messages, run.status if run.status in ENDED else None


def _end(sequence: int, status: str) -> Message:
    return Message("end", json.dumps({"status": status}), sequence)


async def _all_of(inbox: _Inbox) -> list[Message | _Drawn | None]:
    """What is there, one at least: sent at once, for it is the sending that costs."""
    found = [await inbox.get()]
    while not inbox.empty() and found[-1] is not None:
        found.append(inbox.get_nowait())
    return found


def _hang_up(inbox: _Inbox) -> None:
    """Tell a viewer that nothing more comes. Where its queue is full it gets nothing of that: it comes back behind the
    last chunk it has, and one that was left out in between would be lost."""
    if not _offer(inbox, None):
        while not inbox.empty():
            inbox.get_nowait()
        _offer(inbox, None)


def _offer(inbox: _Inbox, message: Message | _Drawn | None) -> bool:
    try:
        inbox.put_nowait(message)
    except asyncio.QueueFull:
        return False
    return True
