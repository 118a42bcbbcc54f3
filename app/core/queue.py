"""Sending work and wake-ups through Redis. Losing any of it loses nothing: the database is the record.

Work goes by task name, so that the web application never imports the worker.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from urllib.parse import urlsplit

import redis
import structlog
from celery import Celery
from kombu.exceptions import OperationalError
from redis.backoff import NoBackoff
from redis.retry import Retry

log = structlog.get_logger()

# A nudge goes to all of them: one kind of worker may not be able to take a run.
CPU_RUNS, GPU_RUNS, HOST_RUNS = "runs-cpu", "runs-gpu", "runs-hosts"
PATIENCE_SECONDS = 0.5  # with a Redis that hangs; what is lost by it the sweep and the viewers' polling find
NUDGE_SECONDS = 60  # the sweep nudges again as long as a run waits
CONTROL_QUEUE = "control"
RUN_NEXT = "worker.run_next"
JUDGE_NEXT = "worker.judge_next"
WARM_JUDGE = "worker.warm_judge"
SWEEP_RUNS = "worker.sweep_runs"
CLOSE_SITTINGS = "worker.close_sittings"
PREPARE_DAYS = "worker.prepare_days"
KEEP_ROOM = "worker.keep_room"
KEEP_ARTIFACTS = "worker.keep_artifacts"
FIT_PARAMETERS = "worker.fit_parameters"


def broker_url(redis_url: str) -> str:
    """A redis-py URL as kombu wants it: Unix sockets have another scheme there."""
    parts = urlsplit(redis_url)
    if parts.scheme == "unix":
        return f"redis+socket://{parts.path}"
    return redis_url


@cache
def sender(redis_url: str) -> Celery:
    """A Celery application that only sends."""
    app = Celery("rankzero", broker=broker_url(redis_url), set_as_current=False)
    app.conf.update(
        task_ignore_result=True,
        broker_connection_retry_on_startup=True,
        broker_transport_options={"socket_timeout": 5, "socket_connect_timeout": 2},
        broker_connection_timeout=2,
    )
    return app


@cache
def client(redis_url: str) -> redis.Redis:
    """A plain client for publishing, in a request: a Redis that hangs is given up on at once, without a retry."""
    return redis.Redis.from_url(
        redis_url,
        socket_connect_timeout=PATIENCE_SECONDS,
        socket_timeout=PATIENCE_SECONDS,
        retry=Retry(NoBackoff(), 0),
    )


def run_channel(run_id: int) -> str:
    return f"rankzero:run:{run_id}"


class Queue:
    """What a process needs to nudge others. Failures are logged, never raised: a beat looks for what was missed."""

    def __init__(self, redis_url: str) -> None:
        self.redis_url = redis_url

    def nudge_workers(self) -> None:
        """Tell device workers that a run may be waiting."""
        self._nudge(RUN_NEXT, (CPU_RUNS, GPU_RUNS, HOST_RUNS), "nudge lost, the sweep will find the run")

    def nudge_judges(self, task: str = JUDGE_NEXT) -> None:
        """Tell a worker of CPU runs that a submission of a code lab may be waiting, or (WARM_JUDGE) may come soon."""
        self._nudge(task, (CPU_RUNS,), "nudge lost, the sweep will find the submission")

    def nudge_control(self, task: str) -> None:
        """Tell the control worker that there is something to do; its beat finds it otherwise."""
        self._nudge(task, (CONTROL_QUEUE,), "nudge lost, the clock will send another")

    def _nudge(self, task: str, queues: Sequence[str], lost: str) -> None:
        try:
            client(self.redis_url).ping()  # fails at once where the task sender would try for seconds
            for name in queues:
                sender(self.redis_url).send_task(task, queue=name, retry=False, expires=NUDGE_SECONDS)
        except (OperationalError, redis.RedisError, OSError, ValueError) as error:
            log.warning(lost, task=task, error=str(error))

    def wake_viewers(self, run_id: int) -> None:
        """Tell every process that streams this run that there is something new."""
        try:
            client(self.redis_url).publish(run_channel(run_id), b"1")
        except (redis.RedisError, OSError, ValueError) as error:
            log.warning("wake-up lost, viewers poll", run=run_id, error=str(error))

    def answers(self) -> bool:
        """Whether Redis answers now."""
        try:
            return bool(client(self.redis_url).ping())
        except (redis.RedisError, OSError, ValueError):
            return False
