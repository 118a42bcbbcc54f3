"""Streaming: every viewer gets every chunk once, in order, whenever it joins, with and without Redis."""

from __future__ import annotations

import asyncio
import json
import re
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest
from markupsafe import Markup

from app.content.catalogue import Catalogue
from app.core.clock import current_moment
from app.core.db import Database
from app.core.queue import Queue
from app.core.templating import add_filters
from app.lab import service, work
from app.lab.folding import RunFold
from app.lab.folds import Folds
from app.lab.live import PARTS, draw_parts
from app.lab.run_page import RunPage
from app.lab.stream import Hub, Message
from app.main import FILTERS
from tests.support import events

SPEC: dict[str, Any] = {"model": "gpt-mini", "training": {"steps": 50, "sequence": 32}}
CHUNKS = 30
NO_REDIS = "unix:///nowhere/redis.sock"


class _Writer:
    """A worker that writes chunks while viewers look on."""

    def __init__(self, database: Database) -> None:
        self.database = database
        with database.write() as session:
            self.run_id = service.submit_run(session, 1, SPEC, None, datetime.now(UTC)).id
        with database.write() as session:
            claim = work.claim_next(session, "w", lambda spec: "CPU", datetime.now(UTC))
        assert claim is not None
        self.claim = claim

    def write(self, step: int) -> None:
        with self.database.write() as session:
            work.append_chunk(session, self.claim, [events.step(step)], datetime.now(UTC))

    def end(self) -> None:
        with self.database.write() as session:
            work.end_run(session, self.claim, "cancelled", datetime.now(UTC))


async def _collect(hub: Hub, run_id: int, after: int = 0, with_parts: bool = False) -> list[Message]:
    return [message async for message in hub.follow(run_id, after, with_parts=with_parts)]


def _steps(messages: list[Message]) -> list[int]:
    return [json.loads(m.data)["events"][0]["step"] for m in messages if m.kind == "chunk"]


def _parts(messages: list[Message]) -> list[tuple[str, str]]:
    """Name and HTML of the parts, in the order they came."""
    return [tuple(json.loads(m.data).values()) for m in messages if m.kind == "part"]


def _watch(
    database: Database, redis_url: str, viewers: Callable[[Hub, _Writer], Any], content: Catalogue | None = None
) -> Any:
    """What `viewers` come to; without `content` nobody may look at the page."""

    async def main() -> Any:
        hub = Hub(database, Queue(redis_url), content or Catalogue(), Folds(), current_moment)
        try:
            return await asyncio.wait_for(viewers(hub, _Writer(database)), 30)
        finally:
            await hub.close()

    # in a thread of its own: the browser tests of the same process keep a loop running in the main one
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, main()).result()


@pytest.mark.parametrize("with_redis", [True, False])
def test_viewers_that_join_at_any_time_get_everything_once(
    database: Database, with_redis: bool, request: pytest.FixtureRequest
) -> None:
    redis_url = request.getfixturevalue("redis_url") if with_redis else NO_REDIS
    request.getfixturevalue("monkeypatch").setattr("app.lab.feed.CROWD", 5)  # some come before there is one, some after

    async def viewers(hub: Hub, writer: _Writer) -> list[list[Message]]:
        tasks = [asyncio.create_task(_collect(hub, writer.run_id)) for _ in range(3)]
        for step in range(1, CHUNKS + 1):
            await asyncio.to_thread(writer.write, step)
            if step % 7 == 0:
                tasks.append(asyncio.create_task(_collect(hub, writer.run_id)))
            await asyncio.sleep(0.005)
        await asyncio.to_thread(writer.end)
        tasks.append(asyncio.create_task(_collect(hub, writer.run_id)))
        return list(await asyncio.gather(*tasks))

    for messages in _watch(database, redis_url, viewers):
        assert _steps(messages) == list(range(1, CHUNKS + 1))
        assert messages[-1].kind == "end"
        assert json.loads(messages[-1].data) == {"status": "cancelled"}


def test_a_wake_up_is_passed_on_at_once(database: Database, redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.lab.stream.POLL_SECONDS", 60.0)  # so that only Redis can be what wakes the feed

    async def viewers(hub: Hub, writer: _Writer) -> list[Message]:
        task = asyncio.create_task(_collect(hub, writer.run_id))
        await asyncio.sleep(0.3)
        await asyncio.to_thread(writer.write, 1)
        await asyncio.to_thread(Queue(redis_url).wake_viewers, writer.run_id)
        await asyncio.sleep(0.3)
        await asyncio.to_thread(writer.end)
        await asyncio.to_thread(Queue(redis_url).wake_viewers, writer.run_id)
        return list(await asyncio.wait_for(task, 10))

    assert _steps(_watch(database, redis_url, viewers)) == [1]


def test_when_the_database_fails_viewers_are_sent_off_and_may_come_back(sqlite: Database) -> None:
    def rename(old: str, new: str) -> None:
        with sqlite.engine.begin() as connection:
            connection.exec_driver_sql(f"ALTER TABLE {old} RENAME TO {new}")

    async def viewers(hub: Hub, writer: _Writer) -> tuple[list[Message], list[Message]]:
        await asyncio.to_thread(writer.write, 1)
        first = asyncio.create_task(_collect(hub, writer.run_id))
        await asyncio.sleep(0.3)
        await asyncio.to_thread(rename, "run", "elsewhere")
        broken_off = await first
        await asyncio.to_thread(rename, "elsewhere", "run")
        await asyncio.to_thread(writer.write, 2)
        await asyncio.to_thread(writer.end)
        return broken_off, await _collect(hub, writer.run_id, after=broken_off[-1].sequence or 0)

    broken_off, resumed = _watch(sqlite, NO_REDIS, viewers)
    assert [message.kind for message in broken_off] == ["chunk"]
    assert _steps(resumed) == [2]
    assert resumed[-1].kind == "end"


def test_a_viewer_resumes_behind_the_last_chunk_it_saw(sqlite: Database) -> None:
    async def viewers(hub: Hub, writer: _Writer) -> list[Message]:
        for step in range(1, 11):
            await asyncio.to_thread(writer.write, step)
        task = asyncio.create_task(_collect(hub, writer.run_id, after=6))
        await asyncio.sleep(0.1)
        await asyncio.to_thread(writer.write, 11)
        await asyncio.to_thread(writer.end)
        return list(await task)

    messages = _watch(sqlite, NO_REDIS, viewers)
    assert _steps(messages) == [7, 8, 9, 10, 11]


def test_a_viewer_that_is_too_far_behind_loses_no_chunk_in_between(
    sqlite: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.lab.feed.MOST_QUEUED", 2)
    monkeypatch.setattr("app.lab.stream.POLL_SECONDS", 0.02)

    async def viewers(hub: Hub, writer: _Writer) -> list[Message]:
        await asyncio.to_thread(writer.write, 1)
        slow = hub.follow(writer.run_id, 0)
        seen = [await anext(slow)]
        feed = hub._feeds[writer.run_id]
        for step in range(2, 8):
            await asyncio.to_thread(writer.write, step)
        while feed.viewers:  # until it is given up on
            await asyncio.sleep(0.02)
        seen += [message async for message in slow]
        await asyncio.to_thread(writer.end)
        return [*seen, *await _collect(hub, writer.run_id, after=seen[-1].sequence or 0)]

    assert _steps(_watch(sqlite, NO_REDIS, viewers)) == list(range(1, 8))


def test_what_viewers_are_sent_is_made_once(sqlite: Database, content: Catalogue) -> None:
    async def viewers(hub: Hub, writer: _Writer) -> list[list[Message]]:
        pages = [asyncio.create_task(_collect(hub, writer.run_id, with_parts=True)) for _ in range(3)]
        for step in range(1, 4):
            await asyncio.to_thread(writer.write, step)
            await asyncio.sleep(0.3)
        late = asyncio.create_task(_collect(hub, writer.run_id))
        await asyncio.sleep(0)
        await asyncio.to_thread(writer.end)
        return [*await asyncio.gather(*pages), await late]

    one, two, three, late = _watch(sqlite, NO_REDIS, viewers, content)
    chunks = [[id(message.wire) for message in each if message.kind == "chunk"] for each in (one, two, three, late)]
    assert chunks[0] == chunks[1] == chunks[2] == chunks[3]
    parts = [{id(message.wire) for message in each if message.kind == "part"} for each in (one, two, three)]
    assert len(parts[0] & parts[1] & parts[2]) > len(PARTS)


def test_who_comes_late_to_a_long_run_waits_for_one_reading_and_gets_what_a_page_draws(
    sqlite: Database, content: Catalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.lab.stream.MOST_KEPT_CHUNKS", 2)
    asked: list[int] = []
    read = Hub._read
    monkeypatch.setattr(Hub, "_read", lambda hub, run, after: (asked.append(after), read(hub, run, after))[1])

    async def viewers(hub: Hub, writer: _Writer) -> list[list[Message]]:
        for step in range(1, 9):
            await asyncio.to_thread(writer.write, step)
        with sqlite.write() as session:
            work.append_chunk(session, writer.claim, [events.step(9), events.log("a line")], datetime.now(UTC))
        tasks = [asyncio.create_task(_collect(hub, writer.run_id, with_parts=at % 2 == 0)) for at in range(6)]
        await asyncio.sleep(0.3)
        tasks.append(asyncio.create_task(_collect(hub, writer.run_id)))
        await asyncio.sleep(0.3)
        await asyncio.to_thread(writer.write, 10)
        await asyncio.to_thread(writer.end)
        return list(await asyncio.gather(*tasks))

    seen = _watch(sqlite, NO_REDIS, viewers, content)
    assert [_steps(each) for each in seen] == [list(range(1, 11))] * 7
    assert asked.count(0) == 1, "all that came while it was read, and who came later"
    kinds = [[e["kind"] for m in each if m.sequence == 9 for e in json.loads(m.data)["events"]] for each in seen]
    assert kinds == [["step"], ["step", "log"]] * 3 + [["step", "log"]]


def test_a_feed_is_gone_when_its_last_viewer_leaves(sqlite: Database) -> None:
    async def viewers(hub: Hub, writer: _Writer) -> int:
        task = asyncio.create_task(_collect(hub, writer.run_id))
        await asyncio.sleep(0.1)
        assert len(hub._feeds) == 1
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return len(hub._feeds)

    assert _watch(sqlite, NO_REDIS, viewers) == 0


@pytest.fixture(autouse=True)
def _filters() -> None:
    """What templates write numbers with is wired where an application is made."""
    add_filters(FILTERS)


@pytest.fixture
def folded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The steps of the events that were folded, by whomever."""
    seen: list[int] = []
    take = RunFold.take

    def counted(fold: RunFold, events: Iterable[Any]) -> None:
        taken = list(events)
        seen.extend(event.step for event in taken)
        take(fold, taken)

    monkeypatch.setattr(RunFold, "take", counted)
    return seen


def test_viewers_of_a_page_share_one_fold_and_get_every_chunk_and_the_last_of_each_part(
    database: Database, content: Catalogue, folded: list[int]
) -> None:
    async def viewers(hub: Hub, writer: _Writer) -> list[list[Message]]:
        tasks = [asyncio.create_task(_collect(hub, writer.run_id, with_parts=n > 0)) for n in range(4)]
        for step in range(1, CHUNKS + 1):
            await asyncio.to_thread(writer.write, step)
            if step % 10 == 0:
                await asyncio.sleep(0.4)
                tasks.append(asyncio.create_task(_collect(hub, writer.run_id, with_parts=True)))
        await asyncio.to_thread(writer.end)
        return list(await asyncio.gather(*tasks))

    plain, *pages = _watch(database, NO_REDIS, viewers, content)
    assert folded == list(range(1, CHUNKS + 1)), "seven viewers look on: one fold a chunk"
    assert _parts(plain) == []
    for messages in pages:
        assert _steps(messages) == list(range(1, CHUNKS + 1))
        assert messages[-1].kind == "end"
        parts = _parts(messages)
        assert {name for name, _ in parts} == set(PARTS)
        assert all(one != other for one, other in pairwise(html for name, html in parts if name == "waits"))
        last = dict(parts)
        assert "Cancelled" in last["status"]
        assert last["title"].startswith(f"<h1>Cancelled after {CHUNKS} steps</h1>"), "what is drawn last is up to date"
        said = [int(found[1]) for name, html in parts if name == "waits" and (found := re.search(r"Step (\d+)", html))]
        assert said == sorted(said), "no part goes back to what was before"


def test_who_comes_back_resumes_the_chunks_and_gets_all_parts_once(sqlite: Database, content: Catalogue) -> None:
    async def viewers(hub: Hub, writer: _Writer) -> tuple[list[Message], list[Message]]:
        for step in range(1, 6):
            await asyncio.to_thread(writer.write, step)
        seen = []
        async for message in hub.follow(writer.run_id, 0, with_parts=True):
            seen.append(message)
            if len(_parts(seen)) == len(PARTS):
                break
        await asyncio.to_thread(writer.write, 6)
        again = asyncio.create_task(_collect(hub, writer.run_id, after=5, with_parts=True))
        await asyncio.sleep(0.2)
        await asyncio.to_thread(writer.end)
        return seen, await again

    seen, again = _watch(sqlite, NO_REDIS, viewers, content)
    assert _steps(seen) == [1, 2, 3, 4, 5]
    assert _steps(again) == [6]
    names = [name for name, _ in _parts(again)]
    assert names[: len(PARTS)] == list(PARTS)
    assert "Cancelled after 6 steps" in dict(_parts(again))["title"]


def test_a_run_that_ended_while_nobody_looked_is_shown_as_it_ended(database: Database, content: Catalogue) -> None:
    async def viewers(hub: Hub, writer: _Writer) -> list[Message]:
        await asyncio.to_thread(writer.write, 1)
        await asyncio.to_thread(writer.end)
        return await _collect(hub, writer.run_id, with_parts=True)

    messages = _watch(database, NO_REDIS, viewers, content)
    assert [message.kind for message in messages] == ["chunk", *["part"] * len(PARTS), "end"]
    assert "Cancelled after 1 step<" in dict(_parts(messages))["title"]


def test_a_page_is_drawn_at_most_every_so_often_and_goes_out_with_the_chunks_it_shows(
    sqlite: Database, redis_url: str, content: Catalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn, written = list[float](), list[bytes]()

    def noted(shown: RunPage, names: Iterable[str]) -> dict[str, Markup]:
        assert threading.current_thread() is not loops_thread[0], "rendering would keep other requests waiting"
        drawn.append(time.monotonic())
        return draw_parts(shown, names)

    monkeypatch.setattr("app.lab.live.draw_parts", noted)
    loops_thread: list[threading.Thread] = []

    async def viewers(hub: Hub, writer: _Writer) -> None:
        loops_thread.append(threading.current_thread())
        task = asyncio.create_task(look_on(hub, writer.run_id))
        for step in range(1, 21):
            await asyncio.to_thread(writer.write, step)
            await asyncio.to_thread(Queue(redis_url).wake_viewers, writer.run_id)
            await asyncio.sleep(0.1)
        await asyncio.to_thread(writer.end)
        await task

    async def look_on(hub: Hub, run_id: int) -> None:
        async for piece in hub.stream(run_id, 0, with_parts=True):
            written.append(piece)

    monkeypatch.setattr("app.lab.feed.DRAW_SECONDS", 0.5)
    _watch(sqlite, redis_url, viewers, content)
    gaps = [later - earlier for earlier, later in pairwise(drawn[:-1])]  # the last one is the end's, at once
    assert gaps
    assert min(gaps) > 0.45, "half a second, but for the time a drawing itself takes"
    assert b"".join(written).count(b"event: chunk") == 20
    assert len(written) <= len(drawn) + 2, "what was there, and the page, to begin with; then one write a drawing"


def test_a_crowd_gets_chunks_that_come_quickly_two_at_a_time_in_bytes_made_once(
    sqlite: Database, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("CROWD", 3), ("GATHERED_SECONDS", 60.0), ("GATHER_SECONDS", 61.0), ("POLL_SECONDS", 60.0)):
        monkeypatch.setattr(f"app.lab.{'stream' if name == 'POLL_SECONDS' else 'feed'}.{name}", value)
    written: list[list[bytes]] = [[], [], []]

    async def viewers(hub: Hub, writer: _Writer) -> None:
        async def look_on(pieces: list[bytes]) -> None:
            async for piece in hub.stream(writer.run_id, 0):
                pieces.append(piece)

        async def put(step: int) -> None:
            await asyncio.to_thread(writer.write, step)
            await asyncio.to_thread(Queue(redis_url).wake_viewers, writer.run_id)
            await asyncio.sleep(0.1)

        tasks = [asyncio.create_task(look_on(pieces)) for pieces in written]
        await asyncio.sleep(0.3)
        for step, deliveries in ((1, 1), (2, 1), (3, 2), (4, 2), (5, 3)):  # the first one at once, then by two
            await put(step)
            while written[0] and len(written[0]) < deliveries:
                await asyncio.sleep(0.02)
            assert len(written[0]) <= deliveries
        tasks.pop().cancel()  # no crowd any more: whoever is left gets what comes at once
        await put(6)
        while len(written[0]) < 4:
            await asyncio.sleep(0.02)
        await asyncio.to_thread(writer.end)
        await asyncio.to_thread(Queue(redis_url).wake_viewers, writer.run_id)
        await asyncio.gather(*tasks)

    _watch(sqlite, redis_url, viewers)
    steps = [[int(each) for each in re.findall(rb'"step": ?(\d+)', piece)] for piece in written[0]]
    assert steps == [[1], [2, 3], [4, 5], [6], []]
    assert [id(piece) for piece in written[0]] == [id(piece) for piece in written[1]], "made once for all"
