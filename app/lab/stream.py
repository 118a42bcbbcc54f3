"""Streaming a run to its viewers: one reader per run and process, however many look on.

The reader asks the database for new chunks when Redis says there are some, and once a second in any case: losing Redis
costs a second, never an event. Nobody holds a database session while waiting. For viewers with the run's page before
them the reader also draws the page's parts, once for all, in a thread: rendering must not keep other requests waiting.
What they are sent stands in `app.lab.feed`.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from math import inf

import redis.asyncio
import structlog
from redis.exceptions import RedisError
from sqlalchemy.orm import Session

from app.content.catalogue import Catalogue
from app.core.db import Database
from app.core.moment import Moment
from app.core.queue import Queue, run_channel
from app.lab import queries
from app.lab.feed import DRAWN, Drawn, Feed, Inbox, Message, Place, all_of, chunk_of, end_of, hang_up, new_inbox, offer
from app.lab.folds import Folds
from app.lab.live import LivePage
from app.lab.models import ENDED, Run

log = structlog.get_logger()

POLL_SECONDS = 1.0
MOST_KEPT_CHUNKS = 256  # at the start; of a longer run, what was before is read once somebody asks for it

News = tuple[list[Message], str | None]  # new chunks and, once the run has ended, its status


class Hub:
    """All feeds of this process."""

    def __init__(
        self, database: Database, queue: Queue, content: Catalogue, folds: Folds, moment: Callable[[], Moment]
    ) -> None:
        self._database, self._content, self._folds, self._moment = database, content, folds, moment
        self._redis_url = queue.redis_url
        self._feeds: dict[int, Feed] = {}
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
    ) -> AsyncIterator[tuple[Feed, Sequence[Message]]]:
        """The viewer joins the feed, then gets what was passed on before; what comes twice is recognised by its
        sequence."""
        inbox = new_inbox()
        feed = self._join(run_id, inbox, with_parts)
        page, drawing = feed.page if with_parts else None, 0
        try:
            await feed.ready.wait()
            history, ended = await self._history(feed, after)
            if history:
                yield feed, [message.for_page for message in history] if with_parts else history
                after = history[-1].sequence or after
            if page is not None:
                if ended or not page.drawing:
                    await asyncio.to_thread(page.draw, once=not ended)
                messages, drawing = feed.parts_after(drawing)
                if messages:
                    yield feed, messages
            if ended:
                yield feed, [end_of(after, ended)]
                return
            place = Place(feed, after, drawing, with_parts)
            while not place.is_over:
                if batch := place.take(await all_of(inbox)):
                    yield feed, batch
        finally:
            self._leave(feed, inbox)

    def has_feed_of(self, learner_id: int, run_id: int) -> bool:
        """Whether somebody looks on already at this run of the learner's."""
        feed = self._feeds.get(run_id)
        return feed is not None and feed.learner_id == learner_id

    async def _history(self, feed: Feed, after: int) -> News:
        """What was passed on behind `after`, and as what the run has ended. All who come together wait for one reading
        of what is not kept; of a run that is too long to be kept each reads for itself."""
        if feed.behind(after) is None:
            feed.earlier = feed.earlier or asyncio.create_task(self._read_earlier(feed))
            await asyncio.wait({feed.earlier})  # a viewer that leaves does not end it
        kept = feed.behind(after)
        if kept is None:
            return await asyncio.to_thread(self._read, feed.run_id, after)
        return kept, feed.ended

    async def _read_earlier(self, feed: Feed) -> None:
        messages, _ = await asyncio.to_thread(self._read, feed.run_id, 0)
        feed.keep_earlier(messages)

    async def close(self) -> None:
        """End every feed: the server stops."""
        for feed in list(self._feeds.values()):
            if feed.task is not None:
                feed.task.cancel()
            for inbox in list(feed.viewers):
                hang_up(inbox)
        if self._client is not None:
            await self._client.aclose()

    def _join(self, run_id: int, inbox: Inbox, with_parts: bool) -> Feed:
        feed = self._feeds.get(run_id)
        if feed is None:
            feed = self._feeds[run_id] = Feed(run_id)
            feed.task = asyncio.create_task(self._run(feed))
        if with_parts and feed.page is None:
            feed.page = LivePage(self._database, self._content, self._folds, run_id, self._moment)
        feed.viewers.add(inbox)
        return feed

    def _leave(self, feed: Feed, inbox: Inbox) -> None:
        feed.viewers.discard(inbox)
        if not feed.viewers:
            if self._feeds.get(feed.run_id) is feed:
                del self._feeds[feed.run_id]
            if feed.task is not None:
                feed.task.cancel()

    async def _run(self, feed: Feed) -> None:
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
                hang_up(inbox)

    async def _begin(self, feed: Feed) -> None:
        """Where there are few chunks so far, all of them are kept from the start."""
        feed.learner_id, newest = await asyncio.to_thread(self._newest, feed.run_id)
        if newest > MOST_KEPT_CHUNKS:
            feed.last = feed.kept_after = newest
            return
        messages, feed.ended = await asyncio.to_thread(self._read, feed.run_id, 0)
        for message in messages:
            feed.keep(message)

    async def _pass_on(self, feed: Feed) -> bool:
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
            self._send(feed, DRAWN)
        if ended:
            feed.ended = ended
            self._send(feed, end_of(feed.last, ended))
        return ended is not None

    def _send(self, feed: Feed, message: Message | Drawn) -> None:
        for inbox in list(feed.viewers):
            if not offer(inbox, message):
                feed.viewers.discard(inbox)
                hang_up(inbox)

    def _look(self, feed: Feed, page: LivePage | None) -> News:
        """What is new in a run, and with it its page drawn, where somebody looks at that."""
        if page is None:
            return self._read(feed.run_id, feed.last)
        found: News = [], None

        def read(session: Session, run: Run) -> None:
            nonlocal found
            found = _news(session, run, feed.last)

        is_first = feed.drawn_at == -inf  # unless a viewer that came just now has drawn it
        page.draw(once=is_first, beside=read)
        if is_first and found[1]:
            page.draw()
        return found

    def _newest(self, run_id: int) -> tuple[int | None, int]:
        """Whose the run is, and its last chunk."""
        with self._database.read() as session:
            run = session.get(Run, run_id)
            return (run.learner_id, run.chunks) if run is not None else (None, 0)

    def _read(self, run_id: int, after: int) -> News:
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


def _news(session: Session, run: Run, after: int) -> News:
    """The chunks that `run` counts behind `after` and, once it has ended, its status: chunks precede the end."""
    messages: list[Message] = []
    while after < run.chunks and (chunks := queries.list_chunks(session, run.id, after)):
        for sequence, events in chunks:
            messages.append(chunk_of(sequence, events))
            after = sequence
    return messages, run.status if run.status in ENDED else None
