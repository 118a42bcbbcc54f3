"""A Redis that is there but does not answer."""

from __future__ import annotations

import os
import signal
import time

import redis

from app.core.queue import Queue
from tests.support.pace import slack_seconds


def test_a_redis_that_hangs_holds_a_request_up_for_half_a_second_at_most(redis_url: str) -> None:
    queue = Queue(redis_url)
    assert queue.answers()
    pid = redis.Redis.from_url(redis_url).info()["process_id"]
    os.kill(pid, signal.SIGSTOP)
    try:
        for ask in (queue.answers, queue.nudge_workers, lambda: queue.wake_viewers(1)):
            began = time.monotonic()
            ask()
            assert time.monotonic() - began < 1.5 + slack_seconds()
        assert not queue.answers()
    finally:
        os.kill(pid, signal.SIGCONT)
    assert queue.answers()
