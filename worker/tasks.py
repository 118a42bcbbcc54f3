"""A device worker's task. Arguments would be a second source of truth: the database says what is to be done."""

from __future__ import annotations

from celery import shared_task

from app.core import queue
from worker import runs
from worker.context import current


@shared_task(name=queue.RUN_NEXT)
def run_next() -> None:
    """Carry out waiting runs until none fits here. A duplicate nudge finds nothing and ends."""
    context = current()
    while not context.stopping.is_set() and runs.take_next(context):
        pass
