"""What a run's viewers are sent: the messages, which of them are kept for those who come, and how far each has come.

What is sent is made into bytes once, whoever gets it. The page is sent of a chunk what it draws itself. With many
viewers it is the sending that costs: chunks and the parts drawn from them go out together, one write a viewer, and to a
crowd two chunks at a time where they come quickly.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import inf
from typing import Any, Literal

from sse_starlette import ServerSentEvent

from app.lab.live import LivePage

DRAW_SECONDS = 0.2  # at least, between two drawings of a page; a worker writes chunks a little less often
CROWD = 16  # viewers, from which on a chunk waits for the next
GATHERED_SECONDS = 0.5  # two chunks of a worker's: who waited as long for the last delivery gets one at once
GATHER_SECONDS = 0.6  # behind the last delivery, at most, a chunk waits for another
MOST_KEPT_BYTES = 4_000_000  # of chunks, of a run that is looked at
DRAWN_KINDS = ("step", "phase")  # of events: what a run's page draws itself (app/static/run.js)
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

    @cached_property
    def for_page(self) -> Message:
        """The same for a run's page, which draws its curves from a chunk and gets all else as parts."""
        if self.kind != "chunk":
            return self
        chunk = json.loads(self.data)
        events = [event for event in chunk["events"] if event["kind"] in DRAWN_KINDS]
        return self if len(events) == len(chunk["events"]) else chunk_of(chunk["sequence"], events)


class Drawn:
    """Says in an inbox that the page was drawn again. Its parts are read when they are sent: who is slow skips some."""


DRAWN = Drawn()
Inbox = asyncio.Queue[Message | Drawn | None]


@dataclass
class Feed:
    """A run that is being looked at."""

    run_id: int
    learner_id: int | None = None  # once it has begun
    last: int = 0
    ended: str | None = None  # as what, once its last chunk was passed on
    kept: deque[Message] = field(default_factory=deque)  # the chunks behind `kept_after`, up to the last
    kept_after: int = 0
    kept_bytes: int = 0
    earlier: asyncio.Task[None] | None = None  # reads the chunks up to `kept_after`, once somebody asks for them
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    viewers: set[Inbox] = field(default_factory=set)
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

    def keep_earlier(self, messages: Sequence[Message]) -> None:
        """Keep chunks from before those that are kept as well, the newest of them first, as far as there is room."""
        for message in reversed(messages):
            sequence = message.sequence or 0
            if sequence > self.kept_after:
                continue
            if self.kept_bytes + len(message.wire) > MOST_KEPT_BYTES:
                return
            self.kept.appendleft(message)
            self.kept_bytes += len(message.wire)
            self.kept_after = sequence - 1

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
class Place:
    """How far a viewer has come."""

    feed: Feed
    after: int  # the last chunk it has
    drawing: int  # and the last drawing of the page
    with_parts: bool
    is_over: bool = False

    def take(self, messages: Sequence[Message | Drawn | None]) -> list[Message]:
        """What of these is new to it."""
        batch: list[Message] = []
        for message in messages:
            if message is None:
                self.is_over = True
            elif isinstance(message, Drawn):
                if self.with_parts:
                    fresh, self.drawing = self.feed.parts_after(self.drawing)
                    batch += fresh
            elif message.kind == "end" or (message.sequence or 0) > self.after:
                batch.append(message.for_page if self.with_parts else message)
                self.after, self.is_over = message.sequence or self.after, message.kind == "end"
        return batch


def chunk_of(sequence: int, events: Sequence[Any]) -> Message:
    return Message("chunk", json.dumps({"sequence": sequence, "events": events}, separators=(",", ":")), sequence)


def end_of(sequence: int, status: str) -> Message:
    return Message("end", json.dumps({"status": status}), sequence)


def new_inbox() -> Inbox:
    return asyncio.Queue(MOST_QUEUED)


async def all_of(inbox: Inbox) -> list[Message | Drawn | None]:
    """What is there, one at least: sent at once, for it is the sending that costs."""
    found = [await inbox.get()]
    while not inbox.empty() and found[-1] is not None:
        found.append(inbox.get_nowait())
    return found


def hang_up(inbox: Inbox) -> None:
    """Tell a viewer that nothing more comes. Where its queue is full it gets nothing of that: it comes back behind the
    last chunk it has, and one that was left out in between would be lost."""
    if not offer(inbox, None):
        while not inbox.empty():
            inbox.get_nowait()
        offer(inbox, None)


def offer(inbox: Inbox, message: Message | Drawn | None) -> bool:
    try:
        inbox.put_nowait(message)
    except asyncio.QueueFull:
        return False
    return True
