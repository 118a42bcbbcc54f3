"""Streaming: every viewer gets every chunk once, in order, whenever it joins, with and without Redis."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest

from app.core.db import Database
from app.core.queue import Queue
from app.lab import service
from app.lab.stream import Hub, Message
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
            claim = service.claim_next(session, "w", lambda spec: "CPU", datetime.now(UTC))
        assert claim is not None
        self.claim = claim

    def write(self, step: int) -> None:
        with self.database.write() as session:
            service.append_chunk(session, self.claim, [events.step(step)], datetime.now(UTC))

    def end(self) -> None:
        with self.database.write() as session:
            service.end_run(session, self.claim, "cancelled", datetime.now(UTC))


async def _collect(hub: Hub, run_id: int, after: int = 0) -> list[Message]:
    return [message async for message in hub.follow(run_id, after)]


def _steps(messages: list[Message]) -> list[int]:
    return [json.loads(m.data)["events"][0]["step"] for m in messages if not m.end]


def _watch(database: Database, redis_url: str, viewers: Callable[[Hub, _Writer], Any]) -> Any:
    async def main() -> Any:
        hub = Hub(database, Queue(redis_url))
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
        assert messages[-1].end
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
        await asyncio.to_thread(rename, "run_chunk", "elsewhere")
        broken_off = await first
        await asyncio.to_thread(rename, "elsewhere", "run_chunk")
        await asyncio.to_thread(writer.write, 2)
        await asyncio.to_thread(writer.end)
        return broken_off, await _collect(hub, writer.run_id, after=broken_off[-1].sequence)

    broken_off, resumed = _watch(sqlite, NO_REDIS, viewers)
    assert [message.end for message in broken_off] == [False]
    assert _steps(resumed) == [2]
    assert resumed[-1].end


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


def test_a_feed_is_gone_when_its_last_viewer_leaves(sqlite: Database) -> None:
    async def viewers(hub: Hub, writer: _Writer) -> int:
        task = asyncio.create_task(_collect(hub, writer.run_id))
        await asyncio.sleep(0.1)
        assert len(hub._feeds) == 1
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return len(hub._feeds)

    assert _watch(sqlite, NO_REDIS, viewers) == 0
