"""The Celery application: how tasks travel. Messages only nudge; losing one loses nothing."""

from __future__ import annotations

from celery import Celery

from app.core import queue
from app.core.settings import Settings

SWEEP_SECONDS = 5.0
DAY_SECONDS = 60.0  # a new study day's cards are chosen within a minute of its start
ARTIFACT_SECONDS = 20.0  # after a run's end, at most
FIT_SECONDS = 600.0  # looking for fits that are due; one that is asked for is nudged

# Longer than any run: a broker that thinks a message was lost would deliver it again. Twice is harmless, since the
# database decides who runs what, but pointless.
VISIBILITY_SECONDS = 6 * 3600


TASKS = {"device": "worker.tasks", "control": "worker.control"}  # of each kind of worker; the clock only sends


def make_celery(settings: Settings, kind: str) -> Celery:
    """The application for a worker of that kind, or for the clock (`beat`)."""
    app = Celery("rankzero", broker=queue.broker_url(settings.redis), include=[TASKS[kind]] if kind in TASKS else [])
    app.conf.update(
        task_ignore_result=True,
        task_default_queue=queue.CONTROL_QUEUE,
        worker_prefetch_multiplier=1,
        worker_hijack_root_logger=False,
        worker_enable_remote_control=False,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        broker_transport_options={"visibility_timeout": VISIBILITY_SECONDS},
        timezone="UTC",
        beat_schedule={
            name: {
                "task": name,
                "schedule": seconds,
                # a sweep that waited is worth nothing: the next one does the same
                "options": {"queue": queue.CONTROL_QUEUE, "expires": 2 * seconds},
            }
            for name, seconds in (
                (queue.SWEEP_RUNS, SWEEP_SECONDS),
                (queue.CLOSE_SITTINGS, SWEEP_SECONDS),
                (queue.PREPARE_DAYS, DAY_SECONDS),
                (queue.FIT_PARAMETERS, FIT_SECONDS),
                (queue.KEEP_ROOM, FIT_SECONDS),
                (queue.KEEP_ARTIFACTS, ARTIFACT_SECONDS),
            )
        },
    )
    return app
