"""A device worker's task. Arguments would be a second source of truth: the database says what is to be done."""

from __future__ import annotations

import threading
from collections.abc import Callable

from celery import shared_task

from app.core import queue
from worker import judging, runs
from worker.context import Context, current


@shared_task(name=queue.RUN_NEXT)
def run_next() -> None:
    """Carry out waiting runs until none fits here. A duplicate nudge finds nothing and ends."""
    _RUNS.work(runs.take_next)


@shared_task(name=queue.JUDGE_NEXT)
def judge_next() -> None:
    """Have waiting submissions of code labs judged, beside a run that is under way."""
    _JUDGING.work(judging.take_next)


@shared_task(name=queue.WARM_JUDGE)
def warm_judge() -> None:
    """Somebody has a code lab before them: have the judge load torch."""
    judging.warm_up(current())


class _OneAtATime:
    """Work that is done by one thread at a time; a nudge that comes meanwhile is not lost."""

    def __init__(self) -> None:
        self._lock, self._nudged = threading.Lock(), threading.Event()

    def work(self, take_next: Callable[[Context], bool]) -> None:
        self._nudged.set()
        while self._nudged.is_set() and self._lock.acquire(blocking=False):
            try:
                self._nudged.clear()
                context = current()
                while not context.stopping.is_set() and take_next(context):
                    pass
            finally:
                self._lock.release()


_RUNS, _JUDGING = _OneAtATime(), _OneAtATime()
