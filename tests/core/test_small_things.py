"""Settings, scales, times and words."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from app.core import times
from app.core.charts import byte_scale
from app.core.moment import Moment
from app.core.queue import broker_url
from app.core.settings import ROOT, Settings, unknown_variables

LISTS = "`rankzero settings` lists them."
BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
THEN = Moment(NOW, BERLIN)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("postgres://u:p@h/d", "postgresql+psycopg://u:p@h/d"),
        ("postgresql://h/d", "postgresql+psycopg://h/d"),
        ("sqlite:////tmp/x.db", "sqlite:////tmp/x.db"),
    ],
)
def test_database_urls_are_read_as_people_write_them(
    settings_for: Callable[..., Settings], url: str, expected: str
) -> None:
    assert settings_for(database_url=url).sqlalchemy_url == expected


def test_hosts_beside_loopback_can_be_allowed(settings_for: Callable[..., Settings]) -> None:
    names = settings_for(allowed_hosts="Tutor.example, 10.0.0.7").host_names
    assert {"tutor.example", "10.0.0.7", "localhost", "127.0.0.1"} <= names


@pytest.mark.parametrize(
    ("redis_url", "broker"),
    [("unix:///a/b.sock", "redis+socket:///a/b.sock"), ("redis://h:6379/1", "redis://h:6379/1")],
)
def test_broker_urls(redis_url: str, broker: str) -> None:
    assert broker_url(redis_url) == broker


@pytest.mark.parametrize("largest", [1.0, 999.0, 14e9, 112e9, 1.12e12, 25.99e6, 8.4e4])
def test_a_scale_holds_its_largest_value_with_a_few_round_ticks(largest: float) -> None:
    scale = byte_scale([largest, largest / 3])
    assert largest <= scale.maximum <= 2 * largest
    assert 4 <= len(scale.ticks) <= 8
    assert scale.ticks[0].text == "0"
    assert scale.ticks[-1].text[-1] == "B"


def test_a_scale_of_nothing_is_still_a_scale() -> None:
    assert byte_scale([]).percent(0) == "0.00"


@pytest.mark.parametrize(
    ("delta", "said"),
    [
        (timedelta(minutes=8), "in 8 min"),
        (timedelta(hours=3), "today at 16:00"),
        (timedelta(days=1), "tomorrow at 13:00"),
        (timedelta(days=-1), "yesterday at 13:00"),
        (timedelta(days=12), "on Thursday 3 December"),
    ],
)
def test_moments_are_said_in_the_learners_zone(delta: timedelta, said: str) -> None:
    assert times.when(NOW + delta, THEN) == said


def test_days_ago() -> None:
    assert times.day(NOW - timedelta(days=9), THEN) == "9 days ago"
    assert times.day(NOW, THEN) == "today"


def test_a_day_ends_where_the_study_day_does() -> None:
    late = Moment(datetime(2026, 11, 22, 0, 30, tzinfo=UTC), ZoneInfo("UTC"))
    assert times.date(late) == "Saturday 21 November, until 04:00"
    assert times.day(late.now - timedelta(hours=1), late) == "today"
    assert times.day(late.now - timedelta(hours=21), late) == "yesterday"
    assert times.date(Moment(late.now + timedelta(hours=4), late.zone)) == "Sunday 22 November"


@pytest.mark.skipif(sys.platform != "linux", reason="the order in which cores are shared out is Linux's")
@pytest.mark.parametrize("leads", [True, False])
def test_a_process_gives_way_only_where_it_leads_a_session_of_its_own(leads: bool) -> None:
    group = Path("/proc/self/autogroup")  # says nothing of a process that Linux has in no such group
    show = f"print(os.nice(0), *Path({str(group)!r}).read_text().split()[-1:] if {group.exists()} else [])"
    code = f"import os; from pathlib import Path; from app.core.priority import give_way; {show}; give_way(3); {show}"
    command = [sys.executable, "-c", code]
    said = subprocess.run(command, capture_output=True, text=True, check=True, start_new_session=leads).stdout
    before, after = (line.split() for line in said.splitlines())
    own = os.getpriority(os.PRIO_PROCESS, 0)
    assert before[0] == f"{own}"
    assert after == ([f"{max(3, own)}"] * len(before) if leads else before)


def test_a_variable_that_is_no_setting_is_named_with_the_one_that_was_meant() -> None:
    assert unknown_variables(["RANKZERO_DATA", "rankzero_port", "RANKZERO_HOST", "PATH"]) == []
    data, tokne = unknown_variables(["RANKZERO_TOKNE", "RANKZERO_DATA_DIR"])
    assert data == "RANKZERO_DATA_DIR is no setting, so it does nothing. Did you mean RANKZERO_DATA? " + LISTS
    assert "Did you mean RANKZERO_TOKEN?" in tokne


def test_every_variable_that_a_run_reads_is_known() -> None:
    """So that nobody is told of one that works."""
    read = {
        name
        for room in ("app", "labs", "worker")
        for path in (ROOT / room).rglob("*.py")
        for name in re.findall(r"RANKZERO_[A-Z_]*[A-Z]", path.read_text(encoding="utf-8"))
    }
    assert read > {"RANKZERO_DATA", "RANKZERO_RUN_BYTES"}
    assert unknown_variables(read) == []
