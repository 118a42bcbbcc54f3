"""The one place that reads the wall clock, for the doors: what is below them is handed a `Moment`, or a time alone."""

from __future__ import annotations

from datetime import UTC, datetime

from app.core.moment import Moment
from app.core.settings import settings
from app.core.zone import learner_zone


def utc_now() -> datetime:
    """Now, in UTC, aware."""
    return datetime.now(UTC)


def current_moment() -> Moment:
    """For a task or a command: now, in the zone of the process's settings. A request has its own, `web.moment_of`."""
    return Moment(utc_now(), learner_zone(settings().time_zone))
