"""Times as a page says them, in the learner's zone."""

from __future__ import annotations

import datetime as dates
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from app.core.days import DAY_STARTS_HOUR, day_number, today
from app.core.moment import Moment


def clock(at: datetime, zone: ZoneInfo) -> str:
    """15:02."""
    return f"{at.astimezone(zone):%H:%M}"


def clock_seconds(at: datetime, zone: ZoneInfo) -> str:
    """14:48:07."""
    return f"{at.astimezone(zone):%H:%M:%S}"


def date(moment: Moment) -> str:
    """Saturday 21 November: the learner's day, which lasts until some hours after midnight, and then says so."""
    day = dates.date.fromordinal(today(moment))
    is_late = moment.now.astimezone(moment.zone).hour < DAY_STARTS_HOUR
    return f"{day:%A} {day.day} {day:%B}{f', until {DAY_STARTS_HOUR:02}:00' if is_late else ''}"


def day(at: datetime, moment: Moment) -> str:
    """The learner's day of `at`, as said at `moment`: today, yesterday, 6 days ago, on 3 December."""
    number = day_number(at, moment.zone)
    days, then = today(moment) - number, dates.date.fromordinal(number)
    if days in (0, 1):
        return ("today", "yesterday")[days]
    return f"{days} days ago" if 1 < days < 30 else f"on {then.day} {then:%B}"


def when(at: datetime, moment: Moment) -> str:
    """As said at `moment`: in 8 min, today at 15:02, tomorrow, on Thursday 3 December."""
    local, today = at.astimezone(moment.zone), moment.now.astimezone(moment.zone).date()
    if timedelta(0) < at - moment.now < timedelta(hours=1):
        return f"in {max(1, round((at - moment.now).total_seconds() / 60))} min"
    days = (local.date() - today).days
    named = {-1: "yesterday", 0: "today", 1: "tomorrow"}.get(days)
    if named:
        return f"{named} at {local:%H:%M}"
    return f"on {local:%A} {local.day} {local:%B}"
