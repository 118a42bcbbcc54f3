"""Study days: they start at 04:00 local, and time between reviews is counted in them. Pure."""

from __future__ import annotations

from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

from app.core.moment import Moment

DAY_STARTS_HOUR = 4


def day_number(at: datetime, zone: ZoneInfo, starts_hour: int = DAY_STARTS_HOUR) -> int:
    """The study day `at` belongs to, as the proleptic ordinal of its date."""
    local = at.astimezone(zone)
    return local.toordinal() - (local.hour < starts_hour)


def day_start(number: int, zone: ZoneInfo, starts_hour: int = DAY_STARTS_HOUR) -> datetime:
    """When study day `number` starts, in UTC.

    Where the clock is put forward over that hour there is no such time, where it is put back there are two. The later
    reading is the one that lies within the day, whatever the zone does, so nothing due then is due before it.
    """
    day = date.fromordinal(number)
    first, second = (
        datetime(day.year, day.month, day.day, starts_hour, tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1)
    )
    return max(first, second)


def today(moment: Moment) -> int:
    """The number of the learner's current study day."""
    return day_number(moment.now, moment.zone)


def study_day(moment: Moment) -> tuple[datetime, datetime]:
    """When the learner's current study day began, and when the next one begins."""
    number = today(moment)
    return day_start(number, moment.zone), day_start(number + 1, moment.zone)
