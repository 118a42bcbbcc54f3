"""Time and zone come in as arguments: one place reads the clock, whoever needs the time is handed it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from fastapi.testclient import TestClient

import app as package
from app.core.clock import current_moment
from app.core.settings import Settings, settings
from app.core.zone import learner_zone
from app.main import create_app
from tests.conftest import Clock

APP = Path(package.__file__).parent
READS = {("datetime", "now"), ("datetime", "utcnow"), ("datetime", "today"), ("date", "today"), ("time", "time")}
# An import's folder is told to be old by its files' own times, which are the file system's and no learner's.
OF_FILES = {"exchange/imports.py"}


def _readings(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name | ast.Attribute):
            owner = node.value.id if isinstance(node.value, ast.Name) else node.value.attr
            if (owner, node.attr) in READS:
                yield f"{owner}.{node.attr}"


def test_only_the_clock_reads_the_clock() -> None:
    modules = {path.relative_to(APP).as_posix(): path for path in APP.rglob("*.py")}
    assert len(modules) > 100
    found = {name for name, path in modules.items() if any(_readings(ast.parse(path.read_text())))}
    assert found == {"core/clock.py"} | OF_FILES


@pytest.mark.parametrize("line", ["datetime.now(UTC)", "datetime.datetime.now()", "date.today()", "time.time()"])
def test_a_reading_is_noticed_however_it_is_written(line: str) -> None:
    assert list(_readings(ast.parse(line)))


def test_the_process_has_the_zone_of_its_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANKZERO_TIME_ZONE", "Asia/Kathmandu")
    settings.cache_clear()
    try:
        moment = current_moment()
    finally:
        monkeypatch.undo()
        settings.cache_clear()
    assert moment.zone == ZoneInfo("Asia/Kathmandu")
    assert abs((datetime.now(UTC) - moment.now).total_seconds()) < 60


def test_without_a_zone_it_is_the_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Pacific/Auckland")
    assert learner_zone("") == ZoneInfo("Pacific/Auckland")


def test_an_application_counts_days_in_the_zone_of_its_own_settings(settings_for, sqlite, clock: Clock) -> None:  # type: ignore[no-untyped-def]
    """At noon of 21 November in Greenwich it is two in the night on Kiritimati, fourteen hours ahead, where the 21st is
    studied until four; three hours later the 22nd has begun there."""
    chosen: Settings = settings_for(time_zone="Pacific/Kiritimati")
    app = create_app(chosen, sqlite)
    app.state.clock = clock
    with TestClient(app, base_url="http://localhost") as client:
        client.post("/first/skip")
        assert "Saturday 21 November, until 04:00" in client.get("/").text
        clock.advance(hours=3)
        assert "Sunday 22 November" in client.get("/").text
        assert "04:00, Pacific/Kiritimati" in client.get("/settings").text
