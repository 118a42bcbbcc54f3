"""The control worker's tasks. Arguments would be a second source of truth: the database says what is to be done.

The rooms of content, study and interviews are loaded where there is something for them to do: they would be half of
this process's start, and most installs have a sitting to close once a week.
"""

from __future__ import annotations

import time

import structlog
from celery import shared_task
from sqlalchemy.exc import SQLAlchemyError

from app.codelabs import work as submissions
from app.core import queue
from app.core.clock import current_moment, utc_now
from app.core.db import database_time
from app.core.idempotency import forget_old
from app.core.leases import STALE_AFTER
from app.interview.overdue import has_overdue
from app.lab import presence, work
from worker import retention
from worker.context import Context, current, is_gone_here

log = structlog.get_logger()


@shared_task(name=queue.SWEEP_RUNS)
def sweep_runs() -> None:
    """End runs whose worker is gone and those that nobody took in time, and nudge workers again when runs wait: a nudge
    may have been lost."""
    context = current()
    try:
        with context.database.write() as session:
            now = database_time(session)
            ended = []
            if _workers_could_beat(context):
                ended = work.give_up_on_stale(session, now, is_gone_here)
                submissions.give_up_on_stale(session, now, is_gone_here)
            expired = work.expire_waiting(session, now)
            presence.forget_workers_long_gone(session, now)
            forget_old(session, utc_now())
    except SQLAlchemyError:
        context.database_away_at = time.monotonic()
        raise
    for run_id in ended:
        log.warning("run given up on: its worker is gone", run=run_id)
        context.queue.wake_viewers(run_id)
    for run_id in expired:
        log.warning("run expired: nobody took it in time", run=run_id)
        context.queue.wake_viewers(run_id)
    with context.database.read() as session:
        waiting, handed_in = work.runs_wait(session), submissions.submissions_wait(session)
    if waiting:
        context.queue.nudge_workers()
    if handed_in:
        context.queue.nudge_judges()


def _workers_could_beat(context: Context) -> bool:
    """Whether the database was there for as long as a worker may be silent. If not, its silence says nothing yet."""
    return time.monotonic() - context.database_away_at > STALE_AFTER.total_seconds()


@shared_task(name=queue.KEEP_ROOM)
def keep_room() -> None:
    """Let go of what old runs have left."""
    retention.let_go(current())


@shared_task(name=queue.KEEP_ARTIFACTS)
def keep_artifacts() -> None:
    """Keep elsewhere what runs have left that ended."""
    if (context := current()).settings.artifacts:
        from worker import artifacts  # noqa: PLC0415 - see above

        artifacts.keep(context)


@shared_task(name=queue.CLOSE_SITTINGS)
def close_sittings() -> None:
    """Close interviews whose time is up and which nobody touched since."""
    context, now = current(), utc_now()
    with context.database.read() as session:
        if not has_overdue(session, now):
            return
    from app.content.catalogue import catalogue  # noqa: PLC0415 - see above
    from app.interview.closing import close_overdue  # noqa: PLC0415

    with context.database.write() as session:
        closed = close_overdue(session, catalogue(), now)
    if closed:
        log.info("sittings closed", count=closed)


@shared_task(name=queue.PREPARE_DAYS)
def prepare_days() -> None:
    """Choose the day's cards of learners who prepare for a date, once a study day."""
    from app.study import api as study  # noqa: PLC0415 - see above

    moment = current_moment()
    with current().database.read() as session:
        waiting = study.list_unplanned(session, moment)
    if not waiting:
        return
    from app.content.catalogue import catalogue  # noqa: PLC0415 - see above

    for learner_id in waiting:
        with current().database.write() as session:
            study.plan_day(session, learner_id, catalogue(), moment)


@shared_task(name=queue.FIT_PARAMETERS)
def fit_parameters() -> None:
    """Ask for fits where enough was reviewed since the last, and start the one that waited longest."""
    from app.study import api as study  # noqa: PLC0415 - see above
    from worker import fits  # noqa: PLC0415

    context = current()
    with context.database.write() as session:
        study.ask_for_fits_where_due(session, utc_now())
    fits.start_next(context)
