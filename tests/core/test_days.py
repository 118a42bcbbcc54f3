"""Study days in every zone: they start at four, follow one another, and nothing due on one is due before it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.core.days import day_number, day_start, study_day
from app.core.moment import Moment

ZONES = st.sampled_from(sorted(available_timezones() - {"localtime", "Factory"}))
MOMENTS = st.datetimes(datetime(1975, 1, 1), datetime(2037, 1, 1), timezones=st.just(UTC))


@pytest.mark.parametrize(
    ("local", "starts"),
    [
        (datetime(2026, 11, 21, 3, 59), datetime(2026, 11, 20, 4, 0)),
        (datetime(2026, 11, 21, 4, 0), datetime(2026, 11, 21, 4, 0)),
        (datetime(2026, 3, 29, 12, 0), datetime(2026, 3, 29, 4, 0)),  # the day clocks go forward
    ],
)
def test_a_study_day_starts_at_four_in_the_morning(local: datetime, starts: datetime) -> None:
    zone = ZoneInfo("Europe/Berlin")
    assert study_day(Moment(local.replace(tzinfo=zone), zone))[0] == starts.replace(tzinfo=zone)


@settings(max_examples=400, deadline=None)
@given(at=MOMENTS, name=ZONES, days=st.integers(1, 400))
def test_a_later_day_starts_after_now_whatever_the_zone_does(at: datetime, name: str, days: int) -> None:
    zone = ZoneInfo(name)
    today = day_number(at, zone)
    assert day_start(today + days, zone) > at
    assert timedelta(0) <= day_start(today + days + 1, zone) - day_start(today + days, zone) <= timedelta(hours=50)


@settings(max_examples=200, deadline=None)
@given(at=MOMENTS, name=ZONES, hours=st.integers(0, 24 * 60))
def test_days_are_counted_forward_but_where_the_clock_is_put_back(at: datetime, name: str, hours: int) -> None:
    zone = ZoneInfo(name)
    assert day_number(at + timedelta(hours=hours), zone) >= day_number(at, zone) - 1
    start, end = study_day(Moment(at, zone))
    assert start - timedelta(hours=3) <= at < end


def test_hours_that_do_not_exist_or_come_twice_belong_to_one_day() -> None:
    """Troll, Antarctica, puts its clock by two hours at 01:00 UTC: to 03:00 in March, to 01:00 in October."""
    for zone, day in (
        (ZoneInfo("Antarctica/Troll"), datetime(2026, 3, 29)),
        (ZoneInfo("Pacific/Apia"), datetime(2011, 12, 31)),
    ):
        number = day.toordinal()
        assert day_number(day_start(number, zone), zone) == number
        assert day_number(day_start(number, zone) - timedelta(minutes=1), zone) < number
